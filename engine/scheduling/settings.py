"""What a search may use, how it works, and what it has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Token limits of a run."""

    step: int
    """Tokens of one step."""
    context: int
    """Tokens of a whole path, prompt included."""


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What makes a run faster without changing it."""

    deduplicate: bool = True
    """Write equal siblings once (SpecScale, computation deduplication)."""
    drafts: bool = False
    """Write likely next steps in the rows that finished paths leave free (FastTTS). Not a default
    before its gain is measured on real devices, and not only on simulated ones."""
    only_if_it_pays: bool = True
    """Draft only where the measured step times say that a further row costs less than it saves."""


DEFAULT = Mechanisms()


@dataclass(slots=True)
class Counts:
    """Work done so far."""

    generated: int = 0
    drafted: int = 0
    dropped: int = 0
    prefill: int = 0
    recomputed: int = 0
    decode_steps: int = 0
    nodes: int = 0
