"""Converted checkpoints, each made once in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.protocol.conversion import BodyType
from tests.engine.convert.converting import Bodies, converted

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family


@pytest.fixture(scope="session")
def body(checkpoint: Callable[[Family], Path], tmp_path_factory: pytest.TempPathFactory) -> Bodies:
    """The GGUF file made from a family's checkpoint, in 16 bits unless told otherwise."""

    @cache
    def made(family: Family, kind: BodyType = "f16") -> Path:
        out = tmp_path_factory.mktemp("converted") / f"{family}.gguf"
        format = None if family in ("generator", "qwen2.5-math-prm") else family
        converted(checkpoint(family), out, kind, format=format)
        return out

    return made
