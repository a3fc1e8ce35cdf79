"""The options of drafts by a second model, and of training predictors for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app.glyphs import glyphs_for
from app.options import request_from
from app.probe_command import probe
from app.run_view import Hand, Node, State
from engine.client import probing
from engine.protocol import Drafting
from tests.app.conftest import Sapwood


def test_the_options_make_a_request() -> None:
    given = {"generator": "seedling-target", "draft": "seedling", "accept": "tokens", "ahead": 3}
    request = request_from("1+1", given)
    assert request.drafting == Drafting(draft="seedling", accept="tokens", ahead=3)
    assert request_from("1+1", {}).drafting is None


@pytest.mark.parametrize("option", ["accept", "probe", "ahead", "floor"])
def test_they_mean_nothing_without_a_draft_model(option: str) -> None:
    with pytest.raises(click.UsageError, match=f"--{option} means nothing without --draft"):
        request_from("1+1", {option: "semantic"})


@pytest.mark.parametrize("option", ["probe", "floor"])
def test_what_predictors_need_means_nothing_where_tokens_are_accepted(option: str) -> None:
    given = {"draft": "seedling", "accept": "tokens", option: "0.5"}
    with pytest.raises(click.UsageError, match=f"--{option} means nothing with --accept tokens"):
        request_from("1+1", given)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_every_hand_has_a_sign_of_its_own(encoding: str) -> None:
    glyphs = glyphs_for(encoding)
    signs = {*glyphs.hands.values(), *glyphs.states.values()}
    assert len(signs) == len(Hand) + len(State)
    node = Node((0,), None, State.KEPT, hand=Hand.ACCEPTED)
    assert glyphs.hands[Hand.ACCEPTED] in glyphs.label(node, scored=True)


def test_collecting_that_is_stopped_tells_what_is_kept_and_the_command_that_goes_on(
    sapwood: Sapwood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*asked: object, **options: object) -> Iterator[int]:
        yield from (0, 1, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(probing, "collect", stopped)
    data = str(tmp_path / "my samples")
    command = ["probe", "collect", "--data", data, "--draft", "seedling", "--generator", "x.gguf"]
    ran = sapwood(*command, "--stories", "3", "--seed", "0")
    assert ran.code == 4
    assert "Stopped: 2 of 3 problems are collected and kept." in ran.err
    again = shlex.join(["sapwood", *command, "--stories", "3", "--seed", "0"])
    assert ran.err.endswith(f"To go on: {again}\n")


@pytest.mark.parametrize(
    "more", [[], ["--stories", "3", "--problems", "x.jsonl"]], ids=["neither", "both"]
)
def test_samples_need_one_source_of_problems(tmp_path: Path, more: list[str]) -> None:
    arguments = ["--data", str(tmp_path), "--draft", "seedling", "--generator", "seedling-target"]
    result = CliRunner().invoke(probe, ["collect", *arguments, *more])
    assert result.exit_code == 2
    assert "either --problems or --stories" in result.output
