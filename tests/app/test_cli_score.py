"""`sapwood score --file`, with a scripted engine."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

import app.score
from app import cli
from engine.protocol import (
    AnyEvent,
    Counters,
    Phase,
    RunFailed,
    RunFinished,
    ScoreRequest,
    StepScored,
    Stop,
    Trouble,
    Warned,
)
from tests.app.conftest import Ran
from tests.app.scripted import StandIn

LOADING = Phase(name="loading", model="a verifier")
WARNED = Warned(code="format", message="Mind this.")
TOO_LONG = RunFailed(trouble=Trouble.USAGE, message="It is too long.", advice="Shorten it.")
DONE = RunFinished(stop=Stop.COMPLETE, counters=Counters())


class Scorer(StandIn):
    """Stands for `LocalEngine`; every step has the score 0.5 unless `does` says otherwise."""

    def __init__(self) -> None:
        self.requests: list[ScoreRequest] = []
        self.does: dict[str, list[AnyEvent]] = {}
        """Events by the problem."""

    async def score(self, request: ScoreRequest) -> AsyncGenerator[AnyEvent, None]:
        self.requests.append(request)
        scored = StepScored(lineage=(), scores=(0.5,) * len(request.steps))
        for event in self.does.get(request.problem, [LOADING, scored, DONE]):
            yield event

    def cancel(self) -> None:
        pass


Score = Callable[..., Ran]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Scorer:
    engine = Scorer()
    monkeypatch.setattr(app.score, "LocalEngine", engine)
    return engine


@pytest.fixture
def score(
    engine: Scorer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Score:
    def run(*arguments: object) -> Ran:
        engine.requests = []
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
        code = cli.run(["score", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Ran(code, out, err, [])

    return run


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    path = tmp_path / "solutions.jsonl"
    lines = [{"id": name, "problem": name, "steps": ["1", "2"]} for name in ("a", "b", "c")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_says_what_it_is_of_and_by_what(
    score: Score, solutions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = score("--file", solutions, "--out", out, "--verifier", "v.gguf", "--prm-format", "trl")
    assert (ran.code, ran.out) == (0, "")
    assert "1/3 a: lowest 0.500" in ran.err
    assert rows(out)[0] == {
        "id": "a",
        "problem": "a",
        "steps": ["1", "2"],
        "scores": [0.5, 0.5],
        "error": None,
        "verifier": "v.gguf",
        "prm_format": "trl",
    }
    assert score("--file", solutions, "--verifier", "v.gguf", "--prm-format", "trl").out == (
        out.read_text()
    )


def test_it_goes_on_where_it_stopped(
    score: Score, engine: Scorer, solutions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    score("--file", solutions, "--out", out)
    whole = out.read_bytes()
    out.write_bytes(whole[: len(whole) - 20])
    ran = score("--file", solutions, "--out", out)
    assert "2 of 3 solutions are scored already" in ran.err
    assert [request.problem for request in engine.requests] == ["c"]
    assert out.read_bytes() == whole


def test_a_solution_that_fails_is_tried_again_and_stops_no_other(
    score: Score, engine: Scorer, solutions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    engine.does = {"a": [LOADING, TOO_LONG], "b": [LOADING, TOO_LONG]}
    assert score("--file", solutions, "--out", out).code == 2
    assert [row["error"] for row in rows(out)] == ["It is too long. Shorten it."] * 2 + [None]
    engine.does = {}
    assert score("--file", solutions, "--out", out, "--context", "9000").code == 0
    assert [row["scores"] for row in rows(out)[3:]] == [[0.5, 0.5]] * 2


def test_what_is_wrong_with_the_verifier_is_told_once_and_no_row(
    score: Score, engine: Scorer, solutions: Path, tmp_path: Path
) -> None:
    engine.does = {"a": [RunFailed(trouble=Trouble.USAGE, message="There is no such verifier.")]}
    ran = score("--file", solutions, "--out", tmp_path / "out")
    assert ran.code == 2
    assert len(engine.requests) == 1
    assert "There is no such verifier." in ran.err
    assert rows(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (["--verifier", "none-such"], "--verifier was seedling and is none-such."),
        (["--prm-format", "trl"], "--prm-format was none and is trl."),
    ],
)
def test_scores_of_another_verifier_or_format_are_not_added_to(
    score: Score, engine: Scorer, solutions: Path, tmp_path: Path, now: list[str], told: str
) -> None:
    out = tmp_path / "out"
    score("--file", solutions, "--out", out)
    kept = out.read_bytes()
    ran = score("--file", solutions, "--out", out, *now)
    assert (ran.code, engine.requests, out.read_bytes()) == (2, [], kept)
    assert told in ran.err
    assert "Choose another --out, or the same settings." in ran.err


def test_the_file_of_solutions_is_not_written_to(
    score: Score, engine: Scorer, solutions: Path
) -> None:
    for content in (solutions.read_text(), '{"id":"a","problem":"a","steps":["1"]}'):
        solutions.write_text(content)
        ran = score("--file", solutions, "--out", solutions)
        assert (ran.code, engine.requests, solutions.read_text()) == (2, [], content)
        assert "line 1 is not a result of 'sapwood score'. Nothing is added" in ran.err


def test_an_empty_file_is_refused(score: Score, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    ran = score("--file", tmp_path / "empty", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "has no solutions in it" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_warning_is_told_once(score: Score, engine: Scorer, solutions: Path) -> None:
    scored = StepScored(lineage=(), scores=(0.5, 0.5))
    engine.does = {problem: [WARNED, LOADING, scored, DONE] for problem in "abc"}
    assert score("--file", solutions).err.count("warning: Mind this.") == 1
    assert score("a", "1\n\n2").err.count("warning: Mind this.") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_it(score: Score, engine: Scorer, solutions: Path) -> None:
    ran = score("--file", solutions, "--out", "/dev/full")
    assert ran.code == 6
    assert len(engine.requests) == 1
    assert "sapwood: /dev/full could not be written (No space left on device)." in ran.err
