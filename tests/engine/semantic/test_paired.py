"""Two models that write together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from engine.models.base import Span
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.protocol.events import DraftJudged, StepDrafted, StepFinished
from engine.semantic.acceptance import Acceptance
from engine.semantic.judges import ByMeaning, ByTokens, distribution, instead, token_chance
from tests.engine.semantic.pairs import PROBLEM, Found, opened, search_paired

MODELS = tuple[LlamaModel, LlamaModel, ChatTemplate]


@pytest.fixture(scope="module")
def models(seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights) -> Iterator[MODELS]:
    """The verifier has learnt the language of the generator, so that it can be its target."""
    template = seedling_generator.template
    with (
        opened(seedling_verifier, capacity=4096, paths=70) as target,
        opened(seedling_generator, capacity=4096, paths=70) as draft,
    ):
        yield target, draft, template


def accepting(chance: float, ahead: int = 1) -> ByMeaning:
    """Accepts any step with this probability."""
    return ByMeaning(
        "last",
        lambda states: np.ones(len(states)),
        lambda states: np.full(len(states), chance),
        Acceptance(ahead),
    )


def texts(found: Found) -> list[tuple[tuple[int, ...], str]]:
    return sorted((c.lineage, c.text) for c in found.completed)


@pytest.mark.parametrize("length", [1, 3, 8])
def test_greedy_speculation_writes_what_the_target_writes(models: MODELS, length: int) -> None:
    alone = search_paired(*models, None, temperature=0)
    drafted = search_paired(*models, ByTokens(length), temperature=0)
    assert texts(drafted) == texts(alone)
    assert 0 < drafted.counts.accepted < drafted.counts.generated


def test_speculation_draws_from_the_targets_distribution(models: MODELS) -> None:
    target, _, template = models
    sampler = Sampler(1.0)
    prompt = template.encode(target.vocabulary, [{"role": "user", "content": PROBLEM}])
    rows = target.forward([Span((0,), prompt)])
    first = _shares(sampler, rows[0])
    expected: dict[tuple[int, ...], float] = {}
    likely = [token for token, share in first.items() if share > 0.002]
    for token in likely:
        target.fork(0, 1)
        second = _shares(sampler, target.forward([Span((1,), [token])])[0])
        target.drop(1)
        expected.update({(token, t): first[token] * share for t, share in second.items()})
    target.reset()
    draws: Counter[tuple[int, ...]] = Counter()
    for seed in range(40):
        found = search_paired(
            *models,
            ByTokens(2),
            n=64,
            step=2,
            max_steps=1,
            seed=seed,
            temperature=1.0,
        )
        for event in found.of(StepFinished):
            draws[event.tokens[:2]] += 1
    total = draws.total()
    assert total >= 2_500
    counts = {key: share * total for key, share in expected.items() if share * total >= 5}
    rest = total - sum(counts.values())
    observed = [draws[key] for key in counts]
    chi = sum((o - e) ** 2 / e for o, e in zip(observed, counts.values(), strict=True))
    chi += (total - sum(observed) - rest) ** 2 / max(rest, 1)
    freedom = len(counts)
    assert freedom > 10
    assert abs(chi - freedom) < 4 * np.sqrt(2 * freedom)


def _shares(sampler: Sampler, logits: np.ndarray) -> dict[int, float]:
    ids, shares = distribution(sampler, logits)
    return dict(zip(ids.tolist(), shares.tolist(), strict=True))


def test_one_step_of_rejection_sampling_gives_the_targets_distribution() -> None:
    rng = np.random.default_rng(0)
    target = np.array([2, 5, 7, 9]), np.array([0.1, 0.2, 0.3, 0.4])
    draft = np.array([1, 2, 5, 9]), np.array([0.3, 0.3, 0.3, 0.1])
    counts: Counter[int] = Counter()
    for drawn, verdict, other in zip(
        rng.choice(draft[0], 20_000, p=draft[1]),
        rng.random(20_000),
        rng.random(20_000),
        strict=True,
    ):
        stands = verdict < token_chance(target, draft, int(drawn))
        counts[int(drawn) if stands else instead(target, draft, other)] += 1
    expected = 20_000 * target[1]
    chi = sum((counts[int(t)] - e) ** 2 / e for t, e in zip(target[0], expected, strict=True))
    assert counts.total() == sum(counts[int(t)] for t in target[0])
    assert chi < 16.3  # 3 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("policy", "judging"), list(product(["majority", "greedy"], [ByTokens(3), accepting(0.6)]))
)
def test_the_same_seed_gives_the_same_tree(
    models: MODELS, policy: str, judging: ByTokens | ByMeaning
) -> None:
    first, second = (search_paired(*models, judging, policy=policy, n=6) for _ in range(2))
    assert texts(first) == texts(second)
    assert first.counts.accepted == second.counts.accepted > 0


def test_drafts_that_are_all_accepted_leave_the_target_nothing_to_write(models: MODELS) -> None:
    found = search_paired(*models, accepting(1.0), n=6)
    assert found.counts.accepted == found.counts.generated
    assert found.counts.steps_accepted == found.counts.steps_drafted > 6
    assert all(event.accepted for event in found.of(DraftJudged))


def test_drafts_that_are_all_refused_leave_the_target_everything(models: MODELS) -> None:
    found = search_paired(*models, accepting(0.0), n=4)
    alone = search_paired(*models, None, n=4)
    assert found.counts.accepted == 0
    assert found.counts.steps_drafted > 4
    assert texts(found) == texts(alone)


def test_steps_drafted_ahead_are_read_together(models: MODELS) -> None:
    # A node of more than one step is needed for that: here all are in the first.
    single = search_paired(*models, accepting(1.0), n=4, step=120, max_steps=1)
    ahead = search_paired(*models, accepting(1.0, ahead=3), n=4, step=120, max_steps=1)
    assert texts(ahead) == texts(single)
    assert len(ahead.of(StepDrafted)) < len(single.of(StepDrafted))


def test_a_draft_model_without_room_leaves_the_writing_to_the_target(
    seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    template = seedling_generator.template
    with (
        opened(seedling_verifier, capacity=2048, paths=30) as target,
        opened(seedling_generator, capacity=256, paths=4) as draft,
    ):
        found = search_paired(target, draft, template, accepting(1.0), n=12)
        assert found.completed
        assert 0 < found.counts.accepted < found.counts.generated
