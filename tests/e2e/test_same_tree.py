"""A seed names a tree: another process, a kill and a resume give the same one, node by node."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from engine.client import read_run
from engine.protocol import BeamsSelected, RunFinished, StepFinished, StepScored
from tests.e2e.conftest import STORY, Sapwood

BEAM = ("solve", "--seed", "7", STORY)
SMOLLM2 = ("solve", "--generator", "smollm2-135m-instruct", "--n", "3", "--max-steps", "3",
           "--step-tokens", "24", "--seed", "7", STORY)  # fmt: skip


def tree(log: Path) -> dict:
    """Everything that makes a tree, and nothing of when it happened."""
    events = list(read_run(log))
    return {
        "texts": {e.lineage: (e.text, e.tokens) for e in events if isinstance(e, StepFinished)},
        "scores": {e.lineage: e.scores for e in events if isinstance(e, StepScored)},
        "rounds": [(e.round, e.kept, e.completed) for e in events if isinstance(e, BeamsSelected)],
    }


def killed_in_mid_run(arguments: tuple[str, ...], home: Path, log: Path) -> None:
    """Start a run and end all of its processes at once when it has finished some steps."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", *arguments, "--trace", str(log)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"SAPWOOD_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_bytes().count(b'"step_finished"') >= 2):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    family = [process, *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.kill()
    for member in family:
        member.wait()


def test_another_process_grows_the_same_tree(sapwood: Sapwood, tmp_path: Path) -> None:
    logs = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for log in logs:
        assert sapwood(*BEAM, "--trace", log).returncode == 0
    assert tree(logs[0]) == tree(logs[1])


def test_another_seed_grows_another_tree(sapwood: Sapwood, tmp_path: Path) -> None:
    logs = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for seed, log in zip(("7", "8"), logs, strict=True):
        assert sapwood("solve", "--seed", seed, STORY, "--trace", log).returncode == 0
    assert tree(logs[0])["texts"] != tree(logs[1])["texts"]


def test_a_killed_run_goes_on_to_the_same_tree(sapwood: Sapwood, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert sapwood(*SMOLLM2, "--trace", whole).returncode in (0, 1)
    killed_in_mid_run(SMOLLM2, tmp_path / "home", killed)
    before = tree(killed)["texts"]
    assert 0 < len(before) < len(tree(whole)["texts"])
    resumed = sapwood("solve", "--resume", killed)
    assert resumed.returncode in (0, 1), resumed.stderr
    last = list(read_run(killed))[-1]
    assert isinstance(last, RunFinished)
    print(f"ties flipped: {last.counters.ties_flipped}")
    assert tree(killed)["texts"] == tree(whole)["texts"]


def test_a_run_is_found_and_shown_after_a_kill(sapwood: Sapwood, tmp_path: Path) -> None:
    log = tmp_path / "killed.jsonl"
    killed_in_mid_run(SMOLLM2, tmp_path / "home", log)
    shown = sapwood("replay", "--text", log)
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) >= 2
