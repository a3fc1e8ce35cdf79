from app.run_view import RunView
from app.tree_rows import Row, tree_rows
from engine.protocol import NodeOpened
from tests.app.streams import beginning, first_round, numbered, view_of, whole_run


def names(rows: list[Row]) -> list[tuple[int, ...] | str]:
    return [row.node.lineage if row.node else f"+{row.folded}" for row in rows]


def test_pruned_siblings_are_one_row_below_the_living() -> None:
    rows, hidden = tree_rows(view_of(numbered([*beginning(), *first_round()])), 20)
    assert names(rows) == [(0,), (3,), "+2"]
    assert rows[-1].folded_best == 0.4
    assert hidden == 0


def test_the_best_path_is_marked() -> None:
    rows, _ = tree_rows(view_of(whole_run()), 20)
    assert [row.node.lineage for row in rows if row.leads and row.node] == [(0,), (0, 0)]


def test_without_room_tips_stay_and_the_rest_is_counted() -> None:
    view = view_of(whole_run())
    rows, hidden = tree_rows(view, 2)
    assert names(rows) == [(0, 0), (3, 0)]
    assert hidden == 4
    assert tree_rows(view, 1)[0][0].node is view.leader


def test_many_nodes_never_give_more_rows_than_asked() -> None:
    view = RunView()
    for i in range(500):
        view.update(NodeOpened(lineage=(i, 0)))
    rows, hidden = tree_rows(view, 10)
    assert len(rows) == 10
    assert hidden == 990
