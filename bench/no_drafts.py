"""The default without drafts, which several benches compare it with."""

from __future__ import annotations

from dataclasses import replace

from engine.scheduling.settings import EXACT, Mode

NO_DRAFTS = "exact, no drafts"
NO_DRAFTS_MODE = Mode(replace(EXACT.mechanisms, drafts=False))
