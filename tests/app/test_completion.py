"""Completion by the shell itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import Sapwood


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_of_its_own(sapwood: Sapwood, shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    ran = sapwood("completion", shell)
    assert ran.code == 0
    assert f"{shell}_complete" in ran.out


def test_another_shell_is_a_usage_error(sapwood: Sapwood) -> None:
    assert sapwood("completion", "tcsh").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sapwood so", "solve"),
        ("sapwood solve --pol", "--policy"),
        ("sapwood solve --policy dv", "dvts"),
    ],
)
def test_bash_completes(tmp_path: Path, words: str, expected: str) -> None:
    program = tmp_path / "sapwood"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app.cli "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(sapwood completion bash)"\n'
        f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        "_sapwood_completion sapwood\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(root)}
    ran = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.split() == [expected]
