import json
from pathlib import Path

import pytest

from app.results import Result
from engine.protocol import AnyEvent, Stop, Trouble, Warned
from tests.app.conftest import Sapwood
from tests.app.streams import (
    answered,
    beginning,
    failing_run,
    finished,
    numbered,
    whole_run,
)

RIGHT = numbered([*beginning(), answered("8", correct=True), finished()])
WRONG = numbered([*beginning(), answered("9", correct=False), finished()])
NONE = numbered([*beginning(), finished()])
FIELDS = {
    "id",
    "problem",
    "answer",
    "correct",
    "score",
    "seconds",
    "tokens",
    "stop",
    "error",
    "settings",
}


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    path.write_text(
        '{"problem": "one", "answer": 8}\n'
        "\n"
        '{"question": "two", "answer": "8", "id": "second"}\n'
        '{"problem": "three", "answer": "8", "more": [1]}\n'
    )
    return path


def results(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_result_a_line_and_the_accuracy_at_the_end(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = sapwood("solve", "--file", str(problems), "--out", str(out), scripts=[RIGHT, WRONG, NONE])
    assert ran.code == 0
    assert ran.out.startswith("accuracy 33.3% (1 of 3 correct, 95 % interval")
    lines = results(out)
    assert all(set(line) == FIELDS for line in lines)
    assert [(line["id"], line["answer"], line["correct"]) for line in lines] == [
        (1, "8", True),
        ("second", "9", False),
        (4, None, False),
    ]
    assert [(r.problem, r.expected) for r in ran.requests] == [
        ("one", "8"),
        ("two", "8"),
        ("three", "8"),
    ]
    assert len({r.log for r in ran.requests}) == 3


def test_problems_side_by_side_are_each_solved_once(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = sapwood(
        "solve", "--file", str(problems), "--out", str(out), "--at-once", "2", scripts=[RIGHT] * 3
    )
    assert ran.code == 0
    assert sorted(str(line["id"]) for line in results(out)) == ["1", "4", "second"]
    assert "3 of 3 correct" in ran.out


def test_side_by_side_needs_a_file(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "one", "--at-once", "2")
    assert ran.code == 2
    assert "--at-once is for the problems of --file" in ran.err


def test_a_warning_is_told_once_for_all_problems(sapwood: Sapwood, problems: Path) -> None:
    def warned(figure: int) -> list[AnyEvent]:
        warning = Warned(code="memory", message=f"It takes {figure} MiB.")
        return numbered([*beginning(), warning, answered("8", correct=True), finished()])

    ran = sapwood("solve", "--file", str(problems), scripts=[warned(1), warned(2), RIGHT])
    assert [line for line in ran.err.splitlines() if "warning" in line] == [
        "warning: It takes 1 MiB."
    ]


def test_without_out_the_results_are_the_output(sapwood: Sapwood, problems: Path) -> None:
    ran = sapwood("solve", "--file", str(problems), "--quiet", scripts=[RIGHT])
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [1, "second", 4]
    assert "accuracy 100.0%" in ran.err


def test_it_goes_on_where_it_stopped(sapwood: Sapwood, problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["solve", "--file", str(problems), "--out", str(out)]
    sapwood(*command, scripts=[RIGHT])
    whole = out.read_bytes()
    first = len(whole.splitlines(keepends=True)[0])
    for kept in (first, first + 1, len(whole) - 1):
        out.write_bytes(whole[:kept])
        ran = sapwood(*command, scripts=[RIGHT])
        assert len(ran.requests) == (1 if kept == len(whole) - 1 else 2)
        assert [line["id"] for line in results(out)] == [1, "second", 4]
        assert "accuracy 100.0% (3 of 3" in ran.out


def test_a_failed_problem_is_recorded_and_tried_again_next_time(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["solve", "--file", str(problems), "--out", str(out)]
    ran = sapwood(*command, scripts=[RIGHT, failing_run(Trouble.MEMORY), RIGHT])
    assert ran.code == 5
    assert "2 of 2 correct" in ran.out
    assert [line["error"] for line in results(out)] == [
        None,
        "It did not work. Do it otherwise. With --force it is done all the same.",
        None,
    ]
    ran = sapwood(*command, scripts=[RIGHT])
    assert [request.problem for request in ran.requests] == ["two"]
    assert "3 of 3 correct" in ran.out
    assert ran.code == 0


@pytest.mark.parametrize(
    ("trouble", "tried"), [(Trouble.MODEL, 1), (Trouble.USAGE, 2), (Trouble.ENGINE, 3)]
)
def test_what_all_problems_share_is_not_tried_on_all(
    sapwood: Sapwood, problems: Path, trouble: Trouble, tried: int
) -> None:
    ran = sapwood("solve", "--file", str(problems), scripts=[failing_run(trouble)])
    assert len(ran.requests) == tried
    assert ran.code == {Trouble.USAGE: 2}.get(trouble, 3)


def test_a_time_limit_is_a_result_and_a_cancelled_problem_is_none(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    late = numbered([*beginning(), answered("8", correct=True), finished(Stop.TIME)])
    cancelled = numbered([*beginning(), answered("8", correct=True), finished(Stop.CANCELLED)])
    ran = sapwood(
        "solve", "--file", str(problems), "--out", str(out), scripts=[late, cancelled, RIGHT]
    )
    assert ran.code == 4
    assert [(line["id"], line["stop"]) for line in results(out)] == [(1, "time")]


def test_a_batch_whose_problems_came_to_the_time_limit_is_not_done(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    late = numbered([*beginning(), answered("8", correct=True), finished(Stop.TIME)])
    command = ["solve", "--file", str(problems), "--out", str(tmp_path / "out")]
    ran = sapwood(*command, "--time-limit", "1", scripts=[RIGHT, late, RIGHT])
    assert ran.code == 4
    assert "1 of 3 problems came to the time limit" in ran.err
    assert "accuracy 100.0% (3 of 3" in ran.out
    assert sapwood(*command).code == 4


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (["--n", "4"], [], "--n was 4 and is 8."),
        ([], ["--seed", "3"], "--seed was 0 and is 3."),
        (["--top-p", "0.5"], ["--top-p", "0.9"], "--top-p was 0.5 and is 0.9."),
        (
            [],
            ["--policy", "majority"],
            "--verifier was seedling and is none; --policy was beam and is majority.",
        ),
        (
            [],
            ["--generator", "seedling-target", "--draft", "seedling", "--accept", "tokens"],
            "--generator was seedling and is seedling-target; --verifier was seedling and is none; "
            "--draft was none and is seedling; --accept was semantic and is tokens; "
            "--policy was beam and is majority.",
        ),
    ],
)
def test_results_of_other_settings_are_not_added_to(
    sapwood: Sapwood, problems: Path, tmp_path: Path, before: list[str], now: list[str], told: str
) -> None:
    out = tmp_path / "out"
    command = ["solve", "--file", str(problems), "--out", str(out)]
    sapwood(*command, *before, scripts=[RIGHT])
    kept = out.read_bytes()
    ran = sapwood(*command, *now)
    assert (ran.code, ran.requests) == (2, [])
    assert told in ran.err
    assert out.read_bytes() == kept
    assert sapwood(*command, *before, "--budget", "6G").code == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("not json", "line 2: "),
        ('{"problem": 5}', "line 2: Expected `str | null`, got `int`"),
        ('{"answer": "8"}', "line 2: no problem in it"),
        ('{"problem": " "}', "line 2: no problem in it"),
        ('{"problem": "y", "answer": []}', "line 2: "),
        ('{"problem": "y", "id": 1}', "line 2: the id 1 was there before"),
        ("[1]", "line 2: "),
    ],
)
def test_wrong_lines_are_named_before_anything_runs(
    sapwood: Sapwood, tmp_path: Path, line: str, why: str
) -> None:
    path = tmp_path / "problems"
    path.write_text('{"problem": "x"}\n' + line + "\n")
    ran = sapwood("solve", "--file", str(path), "--out", str(tmp_path / "out"))
    assert (ran.code, ran.requests) == (2, [])
    assert why in ran.err
    assert not (tmp_path / "out").exists()


def test_a_line_of_brackets_without_end_is_wrong_like_any_other(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text('{"problem": "one", "more": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    ran = sapwood("solve", "--file", str(path))
    assert ran.code == 2
    assert "line 1: its brackets are nested too deeply" in ran.err


def test_many_wrong_lines_are_counted(sapwood: Sapwood, tmp_path: Path) -> None:
    path = tmp_path / "problems"
    path.write_text("x\n" * 50)
    ran = sapwood("solve", "--file", str(path))
    assert "line 5: " in ran.err
    assert "and 45 more" in ran.err


def test_an_empty_file_is_refused(sapwood: Sapwood, tmp_path: Path) -> None:
    (tmp_path / "problems").write_text("\n")
    assert sapwood("solve", "--file", str(tmp_path / "problems")).code == 2


def test_a_file_of_something_else_is_not_written_to(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("a diary\nof mine\n")
    ran = sapwood("solve", "--file", str(problems), "--out", str(precious))
    assert (ran.code, ran.requests) == (2, [])
    assert precious.read_text() == "a diary\nof mine\n"


def test_a_one_line_text_without_line_end_is_not_taken_for_a_torn_result(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("a diary")
    assert sapwood("solve", "--file", str(problems), "--out", str(precious)).code == 2
    assert precious.read_text() == "a diary"


def test_results_of_other_problems_are_not_mixed_in(
    sapwood: Sapwood, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sapwood("solve", "--file", str(problems), "--out", str(out), scripts=[whole_run()])
    problems.write_text('{"problem": "another"}\n')
    ran = sapwood("solve", "--file", str(problems), "--out", str(out))
    assert (ran.code, ran.requests) == (2, [])
    assert "another problem under the id 1" in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_stops_the_batch(sapwood: Sapwood, problems: Path) -> None:
    ran = sapwood("solve", "--file", str(problems), "--out", "/dev/full", scripts=[RIGHT])
    assert ran.code == 6
    assert len(ran.requests) == 1
    assert "sapwood: /dev/full could not be written (No space left on device)." in ran.err


def test_a_folder_as_out_is_told(sapwood: Sapwood, problems: Path, tmp_path: Path) -> None:
    ran = sapwood("solve", "--file", str(problems), "--out", str(tmp_path))
    assert (ran.code, ran.requests) == (6, [])


def test_result_has_exactly_the_documented_fields() -> None:
    assert set(Result.__struct_fields__) == FIELDS
