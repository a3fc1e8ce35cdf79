import json
import re
from pathlib import Path

import msgspec
import pytest

from app import cli
from app.options import MOST_PATHS
from engine.protocol import (
    BeamsSelected,
    Counters,
    Event,
    RunFinished,
    Search,
    SolveRequest,
    Stop,
    Throughput,
    Trouble,
    decode_event,
    encode,
)
from engine.search import MAX_PATHS
from tests.app.conftest import Sapwood
from tests.app.streams import (
    REQUEST,
    answered,
    beginning,
    failing_run,
    finished,
    first_round,
    node,
    numbered,
    run_with_gap_in_log,
    view_of,
    whole_run,
)

EMPTY = numbered([*beginning(), finished()])


def test_the_answer_is_data_and_the_rest_narration(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "How many?")
    assert (ran.code, ran.out) == (0, "8\n")
    assert ran.err.splitlines() == [
        "loading Seedling (a demonstration model for simple stories)",
        "searching",
        "round 1: kept 2 of 4, best 0.90",
        "round 2: kept 0 of 3, 2 completed, best 0.95",
        "● ▰▰▰▰▱ 0.90 · Tom has 3 apples.",
        "★ ▰▰▰▰▰ 0.95 · 3 + 5 = 8, so \\boxed{8}",
        "votes: 8 x2 (1.80) · 9 x1 (0.30)",
        "finished in 2.5 s · 7 steps, 3 pruned · 120 tokens · 110 verified",
    ]


def test_a_round_is_told_once_when_all_of_its_groups_are_decided(sapwood: Sapwood) -> None:
    """Independent paths are decided one by one, some long before the others."""
    flow = Throughput(generated=1, verified=0, rate=1.0, beams=2)
    request = SolveRequest(problem="?", search=Search(policy="majority", n=2))
    early: list[Event] = [
        *node((0,), "1+1=2.\n\n"),
        BeamsSelected(round=0, kept=((0,),)),
        flow,
        *node((0, 0), "So \\boxed{2}."),
        BeamsSelected(round=1, kept=(), completed=((0, 0),)),
        flow,
    ]
    late: list[Event] = [
        *node((1,), "It is 2.\n\n"),
        BeamsSelected(round=0, kept=((1,),)),
        flow,
        *node((1, 0), "So \\boxed{2}."),
        BeamsSelected(round=1, kept=(), completed=((1, 0),)),
        flow,
    ]
    script = numbered([*beginning(request), *early, *late, answered("2"), finished()])
    told = sapwood("solve", "?", scripts=[script]).err.splitlines()
    assert [line for line in told if line.startswith("round")] == [
        "round 1: kept 2 of 2",
        "round 2: kept 0 of 2, 2 completed",
    ]


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        (Counters(helper_tokens=30, accepted_tokens=20), "20 of 30 drafted tokens accepted"),
        (Counters(helper_tokens=30, steps_drafted=5, steps_accepted=4), "4 of 5 drafts accepted"),
    ],
)
def test_the_end_tells_how_much_of_what_was_drafted_was_accepted(
    sapwood: Sapwood, counters: Counters, told: str
) -> None:
    ended = RunFinished(stop=Stop.COMPLETE, counters=counters)
    script = numbered([*beginning(), *first_round(), answered(), ended])
    assert told in sapwood("solve", "?", scripts=[script]).err


def test_more_paths_than_a_search_can_have_are_refused_at_once(sapwood: Sapwood) -> None:
    assert MOST_PATHS == MAX_PATHS
    ran = sapwood("solve", "--n", str(MOST_PATHS + 1), "How many?")
    assert (ran.code, ran.requests) == (2, [])
    assert "257 is not in the range 1<=x<=256" in ran.err


def test_tokens_are_told_of_a_run_whose_engine_could_not_count_them(sapwood: Sapwood) -> None:
    cut_off = RunFinished(stop=Stop.CANCELLED, counters=Counters())
    script = numbered([*beginning(), *first_round(), cut_off])
    ran = sapwood("solve", "How many?", scripts=[script])
    assert ran.code == 4
    tokens = sum(node.tokens for node in view_of(script).nodes.values())
    assert f"4 steps, 2 pruned · {tokens} tokens" in ran.err


def test_quiet_gives_the_answer_alone(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "--quiet", "How many?")
    assert (ran.code, ran.out, ran.err) == (0, "8\n", "")


def test_json_gives_every_event_as_it_is(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "--json", "How many?")
    assert (ran.code, ran.err) == (0, "")
    assert [decode_event(line.encode()) for line in ran.out.splitlines()] == whole_run()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (whole_run(), 0),
        (EMPTY, 1),
        (whole_run(answer=""), 1),
        (failing_run(Trouble.USAGE), 2),
        (failing_run(Trouble.MODEL), 3),
        (failing_run(Trouble.ENGINE), 3),
        (numbered(beginning()), 3),
        (numbered([*beginning(), answered(), finished(Stop.TIME)]), 4),
        (numbered([*beginning(), answered(), finished(Stop.CANCELLED)]), 4),
        (failing_run(Trouble.MEMORY), 5),
        (failing_run(Trouble.STORAGE), 6),
    ],
)
@pytest.mark.parametrize("how", [[], ["--json"], ["--quiet"]])
def test_the_exit_code_says_how_it_ended(
    sapwood: Sapwood, script: list, code: int, how: list[str]
) -> None:
    assert sapwood("solve", "x", *how, scripts=[script]).code == code


def test_a_failure_is_one_plain_line(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "x", "--quiet", scripts=[failing_run(Trouble.MODEL)])
    assert (ran.out, ran.err) == ("", "sapwood: It did not work. Do it otherwise.\n")


def test_what_memory_is_too_short_for_is_told_with_the_option_that_does_it_anyway(
    sapwood: Sapwood,
) -> None:
    ran = sapwood("solve", "x", "--quiet", scripts=[failing_run(Trouble.MEMORY)])
    assert ran.err.endswith("Do it otherwise. With --force it is done all the same.\n")


def test_a_gap_in_the_log_matters_only_where_the_log_was_asked_for(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    gap = [run_with_gap_in_log()]
    ran = sapwood("solve", "x", "--trace", str(tmp_path / "log"), scripts=gap)
    assert (ran.code, ran.out) == (6, "8\n")
    assert "warning: The run log stopped: no space left." in ran.err
    assert sapwood("solve", "x", scripts=gap).code == 0


def test_every_run_is_logged_in_the_users_folder_or_where_it_is_told(
    sapwood: Sapwood, home: Path, tmp_path: Path
) -> None:
    (request,) = sapwood("solve", "x").requests
    assert request.log is not None
    assert Path(request.log).parent == home / "runs"
    (request,) = sapwood("solve", "x", "--trace", str(tmp_path / "mine")).requests
    assert request.log == str(tmp_path / "mine")


def test_a_folder_that_cannot_be_made_costs_the_log_and_not_the_answer(
    sapwood: Sapwood, home: Path
) -> None:
    home.write_text("a file, not a folder")
    ran = sapwood("solve", "x")
    assert (ran.code, ran.out, ran.requests[0].log) == (0, "8\n", None)
    assert "no run log is kept" in ran.err


def test_an_interrupted_run_says_how_to_go_on(sapwood: Sapwood, tmp_path: Path) -> None:
    log = tmp_path / "log"
    stopped = numbered([*beginning(), *first_round(), answered(), finished(Stop.TIME)])
    ran = sapwood("solve", "x", "--trace", str(log), scripts=[stopped])
    assert ran.out == "8\n"
    assert ran.err.endswith(f"To go on: sapwood solve --resume {log}\n")


def test_resume_needs_only_the_log(sapwood: Sapwood, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(map(encode, numbered([*beginning(), *first_round()]))))
    ran = sapwood("solve", "--resume", str(log), "--time-limit", "7")
    assert ran.code == 0
    assert ran.requests == [
        msgspec.structs.replace(REQUEST, log=str(log), resume=True, time_limit=7.0)
    ]


@pytest.mark.parametrize("content", [b"", b"not a log\n", b'{"type":"phase"}\n'])
def test_resume_of_something_else_is_a_usage_error(
    sapwood: Sapwood, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "log").write_bytes(content)
    for command in (["solve", "--resume"], ["replay"]):
        ran = sapwood(*command, str(tmp_path / "log"))
        assert ran.code == 2
        assert "is not a run log" in ran.err


def test_without_options_the_demonstration_pair_searches_by_beam(sapwood: Sapwood) -> None:
    (request,) = sapwood("solve", " x \n").requests
    assert msgspec.structs.replace(request, log=None) == SolveRequest(
        problem="x", generator="seedling", verifier="seedling"
    )


@pytest.mark.parametrize(
    ("options", "policy", "verifier"),
    [
        (["--policy", "majority"], "majority", None),
        (["--policy", "greedy"], "greedy", None),
        (["--policy", "dvts"], "dvts", "seedling"),
        (["--generator", "m.gguf"], "majority", None),
        (["--generator", "m.gguf", "--verifier", "v.gguf"], "beam", "v.gguf"),
        (["--generator", "m.gguf", "--policy", "beam"], "beam", None),
        (["--verifier", "v.gguf"], "beam", "v.gguf"),
    ],
)
def test_defaults_follow_from_the_models(
    sapwood: Sapwood, options: list[str], policy: str, verifier: str | None
) -> None:
    (request,) = sapwood("solve", "x", *options).requests
    assert (request.search.policy, request.verifier) == (policy, verifier)


def test_every_option_reaches_the_request(sapwood: Sapwood) -> None:
    line = (
        "--generator g --verifier v --prm-format f --policy vg --n 16 --width 2 --max-steps 3"
        " --step-tokens 99 --aggregate prod --choose weighted --temperature 0.5 --top-p 0.9"
        " --top-k 40 --min-p 0.1 --seed 7 --context 512 --time-limit 1.5"
    )
    (request,) = sapwood("solve", "x", *line.split()).requests
    plain = msgspec.to_builtins(request)
    options = dict(re.findall(r"--(\S+) (\S+)", line))
    flat = plain | plain["search"] | plain["sampling"]
    assert {name: str(flat[name.replace("-", "_")]).removesuffix(".0") for name in options} == (
        options
    )


def test_the_problem_may_come_from_standard_input(sapwood: Sapwood) -> None:
    for arguments in (["solve"], ["solve", "-"]):
        (request,) = sapwood(*arguments, stdin="Wie viele Äpfel?\n".encode()).requests
        assert request.problem == "Wie viele Äpfel?"


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", ""],
        ["solve", "-"],
        ["solve", "x", "--n", "0"],
        ["solve", "x", "--n", "many"],
        ["solve", "x", "--temperature", "nan"],
        ["solve", "x", "--top-p", "0"],
        ["solve", "x", "--time-limit", "0"],
        ["solve", "x", "--time-limit", "inf"],
        ["solve", "x", "--policy", "guess"],
        ["solve", "x", "--json", "--quiet"],
        ["solve", "x", "--out", "y"],
        ["solve", "x", "--file", "y"],
        ["solve", "x", "--resume", "y"],
        ["solve", "--resume", "y", "--n", "4"],
        ["solve", "--file", "y", "--json"],
        ["solve", "--file", "/no/such/file"],
        ["solve", "--resume", "/no/such/file"],
        ["solve", "x", "y"],
        ["solve", "x", "--no-such"],
        ["replay"],
        ["replay", "/no/such/file"],
        ["replay", "x", "--json", "--text"],
        ["dance"],
    ],
)
def test_wrong_use_is_one_line_and_starts_nothing(sapwood: Sapwood, arguments: list[str]) -> None:
    ran = sapwood(*arguments)
    assert (ran.code, ran.out, ran.requests) == (2, "", [])
    assert re.fullmatch(r"sapwood: .*\n", ran.err)


def test_a_problem_that_is_not_text_is_refused(sapwood: Sapwood) -> None:
    assert sapwood("solve", stdin=b"\xff\xfe").code == 2
    assert sapwood("solve", "\udcff").code == 2


def test_model_text_cannot_reach_the_terminal_as_anything_but_text(sapwood: Sapwood) -> None:
    evil = "[red]\x1b]0;title\x07\x9b2J\u202e"
    ran = sapwood("solve", "x", scripts=[whole_run(answer=evil, text=evil + "\n\n")])
    assert ran.out == "[red]\\x1b]0;title\\x07\\x9b2J\\u202e\n"
    assert "[red]\\x1b]0;title" in ran.err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ran.err)


def test_a_defect_is_told_in_one_line_unless_its_place_is_wanted(
    sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [whole_run()[0], object()]
    ran = sapwood("solve", "x", "--json", scripts=[broken])  # type: ignore[list-item]
    assert ran.code == 3
    assert re.search(r"^sapwood: Unexpected \w+: .* SAPWOOD_DEBUG=1", ran.err)
    monkeypatch.setenv("SAPWOOD_DEBUG", "1")
    with pytest.raises((AttributeError, TypeError)):
        sapwood("solve", "x", "--json", scripts=[broken])  # type: ignore[list-item]


def test_the_version_is_one_line(sapwood: Sapwood) -> None:
    assert re.fullmatch(r"sapwood \S.*\n", sapwood("--version").out)


def test_help_documents_every_exit_code(sapwood: Sapwood) -> None:
    for arguments in (["--help"], [], ["solve", "--help"]):
        ran = sapwood(*arguments)
        assert ran.code == 0
        for code in (0, 1, 2, 3, 4, 5, 6, 130):
            assert re.search(rf"^ +{code}  \w", ran.out, re.MULTILINE)


def test_json_is_valid_whatever_the_encoding_of_the_terminal(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "--json", "x", scripts=[whole_run(answer="∑\x1b")])
    assert json.loads(ran.out.splitlines()[-2])["answer"] == "∑\x1b"
    assert isinstance(decode_event(ran.out.splitlines()[-1].encode()), RunFinished)


def test_the_entry_point_exits_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["sapwood", "dance"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2


def test_an_interrupt_before_anything_is_loaded_leaves_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.output.prepare", interrupted)
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 130
    assert capsys.readouterr() == ("", "")
