"""The file of results itself, of problems and of solutions alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.problems import Problem
from app.result_file import ResultFile
from app.results import Result
from app.solutions import ScoreRow, Solution

SETTINGS = {"verifier": "one", "prm_format": None}


def result(id: str | int) -> Result:
    return Result(id=id, problem="p", answer="8", seconds=0.5, settings=SETTINGS)


def score(id: str | int) -> ScoreRow:
    return ScoreRow(
        id=id,
        problem="p",
        steps=("a", "b"),
        scores=(0.5, 0.25),
        error=None,
        verifier="one",
        prm_format=None,
    )


ROWS: list[Any] = [result, score]
ITEMS = {result: Problem("x", "p", None), score: Solution("x", "p", ("a", "b"))}
both = pytest.mark.parametrize("row", ROWS)


def opened(path: Path, row: Any, *items: Any, **settings: str) -> ResultFile[Any]:
    return ResultFile(path, type(row("x")), items, {**SETTINGS, **settings}, default={})


def refusal(path: Path, row: Any, *items: Any, **settings: str) -> str:
    before = path.read_bytes()
    with pytest.raises(CommandError) as caught:
        opened(path, row, *items, **settings)
    assert caught.value.code is ExitCode.USAGE
    assert path.read_bytes() == before
    return caught.value.message


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes: a write that would is cut short, the next one fails."""
    import resource  # not on Windows

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(os.name == "nt", reason="needs limits of a process")
@both
def test_a_write_that_is_cut_short_is_told_and_only_the_torn_row_is_lost(
    row: Any, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    file = opened(path, row)
    file.append(row("x"))
    whole = path.read_bytes()
    with room_for(len(whole) + 10), pytest.raises(CommandError) as caught:
        file.append(row("y"))
    assert caught.value.code is ExitCode.STORAGE
    assert "could not be written" in caught.value.message
    assert path.read_bytes()[: len(whole)] == whole
    assert len(path.read_bytes()) == len(whole) + 10
    again = opened(path, row, ITEMS[row])
    assert list(again.done) == ["x"]
    again.append(row("y"))
    assert list(opened(path, row).done) == ["x", "y"]


@both
@pytest.mark.parametrize(
    "content",
    [
        "a diary\nof mine\n",
        "a diary",
        '{"id":1,"problem":"p","answer":"8"}\n',
        '{"id":1,"problem":"p","answer":"8"}',
        '{"id": 1, "problem": "p',
        '{"id":1,"problem":"p","steps":["a"]}\n',
        '{"id":1,"problem":"p","solution":"a"}',
        '{"id":1}\n',
        "[" * 100_000 + "\n",
        "\n",
        "\udcff",
    ],
)
def test_a_file_of_something_else_is_left_as_it_is(row: Any, content: str, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content.encode(errors="surrogateescape"))
    told = refusal(path, row)
    assert "line 1 is not a result of 'sapwood" in told
    assert "Nothing is added to a file that holds something else" in told


def test_results_of_the_other_command_are_something_else(tmp_path: Path) -> None:
    for ours, theirs in ((result, score), (score, result)):
        path = tmp_path / ours.__name__
        opened(path, theirs).append(theirs("x"))
        command = "sapwood score" if ours is score else "sapwood solve"
        assert f"is not a result of '{command}'" in refusal(path, ours)


@both
def test_results_with_other_settings_are_not_added_to(row: Any, tmp_path: Path) -> None:
    path = tmp_path / "out"
    opened(path, row).append(row("of another file"))
    told = refusal(path, row, ITEMS[row], verifier="two", prm_format="trl")
    assert "--verifier was one and is two; --prm-format was none and is trl." in told


def test_another_problem_or_solution_under_the_same_id_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out"
    opened(path, score).append(score("x"))
    opened(path, score, ITEMS[score])
    told = refusal(path, score, Solution("x", "another", ("a", "b")))
    assert "another problem under the id 'x'" in told
    told = refusal(path, score, Solution("x", "p", ("a", "c")))
    assert "another solution under the id 'x'" in told


@both
def test_what_failed_is_done_again_with_any_settings(row: Any, tmp_path: Path) -> None:
    path = tmp_path / "out"
    opened(path, row).append(msgspec.structs.replace(row("x"), error="It did not work."))
    assert opened(path, row, ITEMS[row], verifier="two").done == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@both
def test_a_pipe_is_written_to_and_not_read(row: Any, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    opened(path, row, ITEMS[row]).append(row("x"))
    assert os.read(reader, 1000).startswith(b'{"id":"x"')
    os.close(reader)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@both
def test_a_device_is_not_read_and_a_full_one_told(row: Any) -> None:
    file = opened(Path("/dev/full"), row, ITEMS[row])
    with pytest.raises(CommandError, match="No space left on device") as caught:
        file.append(row("x"))
    assert caught.value.code is ExitCode.STORAGE
