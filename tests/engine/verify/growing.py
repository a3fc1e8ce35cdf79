"""Scoring a branching tree step by step."""

from __future__ import annotations

from collections.abc import Sequence

from engine.verify.prm import Prm


def grown(prm: Prm, paths: Sequence[Sequence[str]]) -> list[tuple[float, ...]]:
    """Scores of paths whose steps are scored one after another, all paths side by side."""
    tips = [prm.root for _ in paths]
    for depth in range(max(map(len, paths))):
        going = [i for i, path in enumerate(paths) if depth < len(path)]
        scored = prm.score([(tips[i], [paths[i][depth]]) for i in going])
        for i, tip in zip(going, scored, strict=True):
            tips[i] = tip
    return [tip.scores_since(prm.root) for tip in tips]
