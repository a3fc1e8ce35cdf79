"""A verifier's format: the one asked for, and what is said where its file says another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine import catalogue, seedling
from engine.service.judge import find_judge


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A verifier that says that it is of the format 'seedling'."""
    return Path(shutil.copy(seedling.verifier_path(), tmp_path / "judge.gguf"))


def test_the_format_asked_for_is_taken_and_the_file_s_own_named(file: Path) -> None:
    judge = find_judge(str(file), "rlhflow")
    assert judge.format.name == "rlhflow"
    assert judge.warning is not None
    assert judge.warning.message.startswith(
        "judge.gguf says that it is of the format 'seedling', and is read as one of the format "
        "'rlhflow', as was asked for"
    )


def test_a_model_of_the_catalogue_is_asked_too() -> None:
    assert find_judge("seedling", "rlhflow").warning is not None


@pytest.mark.parametrize("format", [None, "seedling"])
def test_where_both_say_the_same_there_is_no_warning(file: Path, format: str | None) -> None:
    assert find_judge(str(file), format).warning is None


def test_a_file_that_says_nothing_or_is_not_there_gives_no_warning(tmp_path: Path) -> None:
    generator = str(seedling.generator_path())
    assert find_judge(generator, "rlhflow").warning is None
    assert find_judge(str(tmp_path / "none.gguf"), "rlhflow").warning is None
    assert find_judge(str(tmp_path), "rlhflow").format == catalogue.load().format("rlhflow")
