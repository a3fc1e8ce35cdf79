"""What a config promises of a conversion is what the conversion gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.memory.estimate import facts
from engine.memory.foresee import foresee
from engine.models.gguf import read_header
from tests.engine.convert.converting import Bodies

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

FAMILIES: tuple[Family, ...] = ("qwen2.5-math-prm", "rlhflow")


@pytest.mark.parametrize("family", FAMILIES)
def test_shape_and_size_are_foreseen(
    checkpoint: Callable[[Family], Path], body: Bodies, family: Family
) -> None:
    folder, out = checkpoint(family), body(family, "q8_0")
    header = read_header(out)
    made = facts(header, out.stat().st_size)
    headed = family == "qwen2.5-math-prm"
    found = foresee((folder / "config.json").read_bytes(), family, headed=headed)
    same = ("layers", "cell_values", "width", "inner", "queries", "vocabulary", "trained_context")
    assert {k: getattr(found, k) for k in same} == {k: getattr(made, k) for k in same}
    assert found.parameters == pytest.approx(made.parameters, rel=0.01)
    assert found.on_device == pytest.approx(made.on_device, rel=0.02)
    assert found.embedding == made.embedding
