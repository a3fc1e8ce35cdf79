"""Checkpoints of the verifier families, each written once in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Family], Path]:
    """The folder of a family's small checkpoint."""

    @cache
    def folder(family: Family) -> Path:
        from tests.engine.checkpoints import build  # torch takes seconds to import

        return build(family, tmp_path_factory.mktemp("checkpoints") / family)

    return folder
