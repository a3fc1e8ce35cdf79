"""Which finished nodes to write on before they are decided, and what speaks for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from engine.scheduling.drafts import Drafts
from engine.scheduling.node import Node
from engine.scheduling.settings import Mechanisms
from engine.scheduling.tree import OpenGroup, ReasoningTree
from engine.search.policy import Ending, Group, Lineage, Outlook, Policy


@dataclass(frozen=True, slots=True)
class Prospect:
    """A node that may be written on."""

    node: Node
    group: Group
    """The group it is or would be a candidate of."""
    chance: float
    """That it survives, from 0 to 1."""
    branches: int | None = None
    """Most children to write; None for all."""

    @property
    def sure(self) -> bool:
        return self.chance == 1.0


class Prospects:
    """Ranks finished nodes by the rule of the mode."""

    def __init__(self, policy: Policy, mechanisms: Mechanisms) -> None:
        self._policy = policy
        self._mechanisms = mechanisms
        self.lost: list[Lineage] = []
        """Undecided nodes that are outranked for good."""

    def rank(self, tree: ReasoningTree, drafts: Drafts) -> list[Prospect]:
        """All nodes that may be written on, the most promising first."""
        self.lost = []
        found = [prospect for opened in tree.groups for prospect in self._candidates(tree, opened)]
        chances = {prospect.node.lineage: prospect.chance for prospect in found}
        priors: dict[int, float] = {}
        # Parents come before their children: a draft is added after what it follows.
        for group, node in drafts.finished():
            before = chances.get(node.lineage[:-1])
            if before is not None and _goes_on(node):
                if id(group) not in priors:
                    priors[id(group)] = self._prior(group)
                chance = before * priors[id(group)]
                chances[node.lineage] = chance
                found.append(Prospect(node, group, chance))
        match self._mechanisms.draft_rule:
            case "binned":
                found = [self._binned(prospect) for prospect in found]
                return sorted(found, key=lambda p: p.branches or 0, reverse=True)
            case "verified":
                found = [p for p in found if p.node.scores is not None]
                return sorted(found, key=_score, reverse=True)
        return sorted(found, key=lambda p: (p.chance, _score(p)), reverse=True)

    def _candidates(self, tree: ReasoningTree, opened: OpenGroup) -> Iterable[Prospect]:
        group = opened.group
        if group.whole:
            return
        scored = [node.candidate() for node in opened.nodes if node.scores is not None]
        outlook = self._policy.outlook(group, scored, tree.completed_in(group))
        if outlook is None:
            return
        if self._mechanisms.prune_early:
            self.lost += outlook.lost
        chances = survival(outlook)
        if not self._mechanisms.certainty:
            chances = {lineage: min(chance, 0.99) for lineage, chance in chances.items()}
        # One that is not scored yet is as likely as another to be among the best.
        prior = min(0.99, outlook.keeps / max(outlook.keeps, len(group.branches)))
        for node in opened.nodes:
            if not _goes_on(node):
                continue
            chance = prior if node.scores is None else chances.get(node.lineage, 0.0)
            if chance or not self._mechanisms.prune_early:
                yield Prospect(node, group, chance)

    def _prior(self, group: Group) -> float:
        """The share of a draft's siblings, and of all others of its round, that will survive."""
        outlook = self._policy.outlook(group, (), ())
        return 1.0 / len(group.branches) if outlook is not None else 0.0

    def _binned(self, prospect: Prospect) -> Prospect:
        """FastTTS: with as many bins as branches, bin j from the top grants B - j + 1 of them."""
        following = self._policy.follow(prospect.group, prospect.node.lineage)
        bins = len(following.branches) if following else 1
        parent = prospect.node.parent
        score = parent.scores[-1] if parent and parent.scores else 1.0
        branches = min(bins, int(score * bins) + 1)
        return Prospect(prospect.node, prospect.group, prospect.chance, branches)


def survival(outlook: Outlook) -> dict[Lineage, float]:
    """The chance of each ranked candidate to stay among the best, by its place.

    Every outstanding candidate is taken to land above place r of v scored ones with probability
    (r + 1) / (v + 1), as if scores came from one distribution. 1 stands for certainty alone.
    """
    sure = set(outlook.sure)
    chances: dict[Lineage, float] = {}
    scored, outstanding = len(outlook.ranked), outlook.outstanding
    for place, lineage in enumerate(outlook.ranked[: outlook.keeps]):
        if lineage in sure:
            chances[lineage] = 1.0
            continue
        above = (place + 1) / (scored + 1)
        spare = min(outlook.keeps - 1 - place, outstanding)
        chance = sum(
            comb(outstanding, k) * above**k * (1 - above) ** (outstanding - k)
            for k in range(spare + 1)
        )
        chances[lineage] = min(chance, 0.99)
    return chances


def _goes_on(node: Node) -> bool:
    return node.ending in (Ending.STEP, Ending.LENGTH)


def _score(prospect: Prospect) -> float:
    """Its own score, or before it has one its parent's, which it tends to share."""
    node = prospect.node
    scores = node.scores or (node.parent.scores if node.parent else None)
    return scores[-1] if scores else 0.0
