"""Converted checkpoints, each made once in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.convert.converting import converted

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family


@pytest.fixture(scope="session")
def body(
    checkpoint: Callable[[Family], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Family], Path]:
    """The GGUF file made from a family's checkpoint, in 16 bits."""

    @cache
    def made(family: Family) -> Path:
        out = tmp_path_factory.mktemp("converted") / f"{family}.gguf"
        format = None if family == "generator" else family
        converted(checkpoint(family), out, format=format)
        return out

    return made
