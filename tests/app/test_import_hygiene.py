"""What a command that needs nothing must not load: heavy modules make it slow to start."""

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "engine",
    "huggingface_hub",
    "llama_cpp",
    "math_verify",
    "msgspec",
    "numpy",
    "rich",
    "textual",
    "torch",
    "transformers",
}


def loaded(*arguments: str) -> set[str]:
    """The modules in memory after `sapwood` ran."""
    program = (
        "import sys, contextlib, io\n"
        "from app import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    assert cli.run({list(arguments)!r}) == 0\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(ran.stdout.split())


@pytest.mark.parametrize("arguments", [["--help"], [], ["solve", "--help"], ["models", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded(*arguments).isdisjoint(HEAVY)
