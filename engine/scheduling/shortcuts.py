"""What the papers do to be faster that changes what is found. Never used unless asked for."""

from __future__ import annotations

from statistics import NormalDist

from engine.models.base import Vocabulary
from engine.scheduling.node import Node
from engine.scheduling.tree import OpenGroup
from engine.search.policy import Ending, Outlook

_DEVIATION = 0.1
"""Standard deviation of the kept share in the FastTTS artifact."""


def inherit(node: Node, sibling: Node, mean: float, vocabulary: Vocabulary) -> None:
    """Let a node begin with a prefix of its sibling's draft (FastTTS, truncation on branching).

    The kept share is normal around `mean`; at least one token is kept and one is not.
    """
    if len(sibling.tokens) < 2:
        return
    chance = min(max(node.draws.uniform(0), 1e-9), 1 - 1e-9)
    share = min(1.0, max(0.0, NormalDist(mean, _DEVIATION).inv_cdf(chance)))
    keep = min(len(sibling.tokens) - 1, max(1, int(share * len(sibling.tokens))))
    for token in sibling.tokens[:keep]:
        node.tokens.append(token)
        node.text += node.stepping.append(vocabulary.piece(token))


def perfect(opened: OpenGroup, outlook: Outlook | None, score: float) -> list[Node]:
    """The nodes to decide a round by at once, since enough of them are perfect (SpecScale).

    Returns:
        As many perfect nodes as survive, and solutions that are scored; none if too few are
        perfect yet.
    """
    if outlook is None:
        return []
    scored = [node for node in opened.nodes if node.scores]
    best = [
        node
        for node in scored
        if node.ending in (Ending.STEP, Ending.LENGTH) and node.scores and node.scores[-1] >= score
    ][: outlook.keeps]
    if len(best) < outlook.keeps or len(scored) == len(opened.nodes):
        return []
    return [node for node in scored if node in best or node.ending is Ending.END]
