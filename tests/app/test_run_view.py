from app.run_view import Hand, RunView, State
from engine.protocol import (
    BeamsSelected,
    DraftJudged,
    NodeOpened,
    NodesPruned,
    RunResumed,
    StepDrafted,
    StepFinished,
    StepScored,
    TextAppended,
    WorkerRestarted,
)
from tests.app.streams import (
    beginning,
    first_round,
    node,
    numbered,
    second_round,
    view_of,
    whole_run,
)


def test_a_node_goes_through_its_states() -> None:
    view = RunView()
    states: list[State] = []
    for event in (
        NodeOpened(lineage=(0,)),
        StepFinished(lineage=(0,), text="a", tokens=(1, 2), ending="step"),
        StepScored(lineage=(0,), scores=(0.5,)),
        BeamsSelected(round=0, kept=((0,),)),
    ):
        view.update(event)
        states.append(view.nodes[(0,)].state)
    assert states == [State.WRITING, State.FINISHED, State.SCORED, State.KEPT]


def test_a_child_of_an_undecided_node_is_a_draft_until_that_is_kept() -> None:
    view = view_of(numbered([*node((0,), "step", 0.5), NodeOpened(lineage=(0, 0))]))
    assert view.nodes[(0, 0)].state is State.DRAFT
    view.update(BeamsSelected(round=0, kept=((0,),)))
    assert view.nodes[(0, 0)].state is State.WRITING


def test_text_is_what_was_appended_and_then_what_was_finished() -> None:
    view = view_of(
        [
            NodeOpened(lineage=(0,)),
            TextAppended(lineage=(0,), text="a "),
            TextAppended(lineage=(0,), text="b"),
        ]
    )
    assert view.nodes[(0,)].text == "a b"
    view.update(StepFinished(lineage=(0,), text="a b c", tokens=(1,), ending="end"))
    assert view.nodes[(0,)].text == "a b c"


def test_a_node_opened_again_starts_empty() -> None:
    view = view_of([NodeOpened(lineage=(0,)), TextAppended(lineage=(0,), text="lost")])
    view.update(NodeOpened(lineage=(0,)))
    assert view.nodes[(0,)].text == ""


def test_a_late_score_does_not_revive_a_pruned_node() -> None:
    view = view_of([NodeOpened(lineage=(0,)), NodesPruned(round=0, lineages=((0,),), reason="r")])
    view.update(StepScored(lineage=(0,), scores=(0.9,)))
    assert view.nodes[(0,)].state is State.PRUNED
    assert view.nodes[(0,)].score == 0.9
    assert view.nodes[(0,)].reason == "r"


def test_what_was_being_written_is_queued_when_the_worker_is_lost() -> None:
    for event in (WorkerRestarted(cause="killed"), RunResumed(nodes=0)):
        view = view_of([NodeOpened(lineage=(0,)), event])
        assert view.nodes[(0,)].state is State.QUEUED


def test_rounds_count_what_was_decided() -> None:
    view = view_of(numbered([*beginning(), *first_round(), *second_round()]))
    first, second = view.rounds[0], view.rounds[1]
    assert (first.kept, first.pruned, first.completed, first.best) == (2, 2, 0, 0.9)
    assert (second.kept, second.pruned, second.completed, second.best) == (0, 1, 2, 0.95)


def test_the_best_path_is_the_selected_one_and_then_the_answer() -> None:
    view = view_of(numbered([*beginning(), *first_round()]))
    assert view.leader is view.nodes[(0,)]
    view = view_of(whole_run())
    chosen = view.nodes[(0, 0)]
    assert view.leader is chosen
    assert chosen.state is State.ANSWER
    assert [step.lineage for step in chosen.path()] == [(0,), (0, 0)]


def test_walk_gives_parents_first_and_children_in_order() -> None:
    view = view_of([NodeOpened(lineage=name) for name in ((2,), (0, 1), (0, 0), (1,), (0,))])
    assert [n.lineage for n in view.walk()] == [(0,), (0, 0), (0, 1), (1,), (2,)]


def test_a_very_long_path_is_no_trouble() -> None:
    lineage = (0,) * 5000
    view = view_of([NodeOpened(lineage=lineage)])
    assert view.depth == len(list(view.walk())) == 5000


def test_a_node_tells_who_wrote_it() -> None:
    view = view_of([NodeOpened(lineage=(0,)), StepDrafted(lineage=(0,), text="2+2=5")])
    node = view.nodes[(0,)]
    assert (node.hand, node.draft, node.text) == (Hand.DRAFTED, "2+2=5", "")
    view.update(DraftJudged(lineage=(0,), accepted=True, probability=0.9))
    assert (node.hand, node.chance) == (Hand.ACCEPTED, 0.9)
    view.update(StepDrafted(lineage=(0,), text="so 6"))
    view.update(DraftJudged(lineage=(0,), accepted=False, probability=0.1))
    assert node.hand is Hand.REWRITTEN  # though a part of it was accepted
    view.update(NodeOpened(lineage=(0,)))
    assert (node.hand, node.draft, node.chance) == (None, "", None)
