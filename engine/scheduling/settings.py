"""What a search may use, how it works, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Limits:
    """Token limits of a run."""

    step: int
    """Tokens of one step."""
    context: int
    """Tokens of a whole path, prompt included."""


DraftRule = Literal["likely", "binned", "verified"]
"""Which finished nodes are written on before they are decided, and how widely.

`likely`: those that will most likely survive, with all their children; the chance comes from the
    scores known so far, and what is certain needs no chance.
`binned`: FastTTS (section 4.1): as many children as the bin of the previous step's score grants.
`verified`: SpecScale (section 4.1): only nodes that are scored themselves, best first.
"""


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What makes a run faster without changing it."""

    deduplicate: bool = True
    """Write equal siblings once (SpecScale, computation deduplication)."""
    drafts: bool = True
    """Write likely next steps in the rows that finished paths leave free (FastTTS, speculative
    beam extension)."""
    only_if_it_pays: bool = True
    """Draft only where the measured step times say that a further row costs less than it saves."""
    early_scores: bool = True
    """Verify steps before their group is complete, when that tells what to draft."""
    lookahead: bool = True
    """Verify finished drafts along with their parents (FastTTS, lookahead verification)."""
    prune_early: bool = True
    """Drop the drafts of nodes that are outranked for good (SpecScale, early pruning by rank)."""
    certainty: bool = True
    """Write on from nodes that are sure to survive as if they were decided."""
    prefix_order: bool = True
    """Where not all paths fit, start next the one that shares the longest prefix with the last
    (FastTTS, prefix-aware scheduling), and evict last what starts soonest."""
    host_copies: bool = True
    """Keep a copy of evicted cells in the host's memory where bringing it back is cheaper than
    computing them again (FastTTS, offload)."""
    draft_rule: DraftRule = "likely"
    verify_tokens: int | None = None
    """Verify once so many tokens wait (SpecScale, lazy verification); None measures from where on
    the verifier gains nothing from waiting."""
    deferrals: int | None = None
    """Verify once a step has let so many others finish; None verifies as soon as what was
    written without knowing the scores would have paid for it."""


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """What makes a run faster and changes it; never used unless its mode is asked for by name."""

    perfect: float | None = None
    """End a round once as many candidates as survive have at least this score (SpecScale)."""
    inherit: float | None = None
    """Mean share of the first child's draft that its siblings begin with (FastTTS, truncation
    ratio R)."""

    @property
    def any(self) -> bool:
        return self.perfect is not None or self.inherit is not None


@dataclass(frozen=True, slots=True)
class Mode:
    """A named way to run a search."""

    mechanisms: Mechanisms
    shortcuts: Shortcuts = Shortcuts()
    whole_paths: bool = False
    """Verify a path from its beginning each time, as without a cache for the verifier."""


_NOTHING = Mechanisms(
    deduplicate=False,
    drafts=False,
    only_if_it_pays=False,
    early_scores=False,
    lookahead=False,
    prune_early=False,
    certainty=False,
    prefix_order=False,
    host_copies=False,
)
"""Rounds one after another, each written, then verified, then decided."""

EXACT = Mode(Mechanisms())
MODES: Mapping[str, Mode] = {
    "exact": EXACT,
    "baseline": Mode(_NOTHING, whole_paths=True),
    "fasttts": Mode(
        Mechanisms(
            deduplicate=False,
            only_if_it_pays=False,
            early_scores=False,
            prune_early=False,
            certainty=False,
            draft_rule="binned",
        ),
        Shortcuts(inherit=0.85),
    ),
    "specscale": Mode(
        Mechanisms(
            only_if_it_pays=False,
            lookahead=False,
            certainty=False,
            prefix_order=False,
            host_copies=False,
            draft_rule="verified",
            verify_tokens=2048,
            deferrals=6,
        ),
        Shortcuts(perfect=0.998),
    ),
}
"""The default, search-and-learn's loop, and the two papers' own ways."""


@dataclass(slots=True)
class Counts:
    """Work done so far, in tokens unless said otherwise."""

    generated: int = 0
    drafted: int = 0
    dropped: int = 0
    prefill: int = 0
    evicted: int = 0
    recomputed: int = 0
    restored: int = 0
    decode_steps: int = 0
    """Passes."""
    nodes: int = 0
    """Nodes opened."""
    helper: int = 0
    """Sampled by a draft model."""
    accepted: int = 0
    """Of `generated`, those that a draft model wrote."""
    steps_drafted: int = 0
    """Steps that a draft model wrote, and of which each was judged as a whole."""
    steps_accepted: int = 0
