"""Tokens are drawn with exactly the probabilities asked for, and with nothing but their own
randomness."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.models.sampling import Draws, Sampler

LOGITS = np.random.default_rng(5).normal(0, 2, 60).astype(np.float32)


def reference(logits: np.ndarray, sampler: Sampler) -> dict[int, float]:
    """Probabilities by the textbook: one filter after the other, plainly."""
    values = [float(value) / sampler.temperature for value in logits]
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))
    if sampler.top_k:
        order = order[: sampler.top_k]
    best = values[order[0]]
    weights = {token: math.exp(values[token] - best) for token in order}
    if sampler.top_p < 1:
        total, running, kept = sum(weights.values()), 0.0, []
        for token in order:
            kept.append(token)
            running += weights[token]
            if running >= sampler.top_p * total:
                break
        weights = {token: weights[token] for token in kept}
    weights = {token: w for token, w in weights.items() if w >= sampler.min_p}
    total = sum(weights.values())
    return {token: w / total for token, w in weights.items()}


def probabilities(logits: np.ndarray, sampler: Sampler) -> dict[int, float]:
    ids, weights = sampler.weights(logits)
    shares = weights / weights.sum(dtype=np.float64)
    return dict(zip(ids.tolist(), shares.tolist(), strict=True))


def test_draws_have_the_exact_probabilities() -> None:
    sampler = Sampler(0.8)
    expected = reference(LOGITS, sampler)
    count = 40_000
    draws = Draws(3, (1, 2))
    drawn = np.bincount(
        sampler.draw(LOGITS, [draws.uniform(i) for i in range(count)]), minlength=len(LOGITS)
    )
    common = [token for token, share in expected.items() if share * count >= 5]
    chi = sum((drawn[t] - expected[t] * count) ** 2 / (expected[t] * count) for t in common)
    degrees = len(common) - 1
    assert chi < degrees + 4 * math.sqrt(2 * degrees)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1000),
    top_k=st.sampled_from([0, 1, 2, 7, 30, 99]),
    top_p=st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 1.0]),
    min_p=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]),
    temperature=st.sampled_from([0.5, 0.8, 1.0, 2.0]),
)
def test_filters_keep_what_the_textbook_keeps(
    seed: int, top_k: int, top_p: float, min_p: float, temperature: float
) -> None:
    logits = np.random.default_rng(seed).normal(0, 2, 40).astype(np.float32)
    sampler = Sampler(temperature, top_p, top_k, min_p)
    expected = reference(logits, sampler)
    kept = probabilities(logits, sampler)
    assert kept == pytest.approx({t: expected[t] for t in sorted(expected)}, abs=1e-6)


def test_of_equal_logits_the_lower_ids_are_kept() -> None:
    level = np.zeros(10, np.float32)
    assert list(probabilities(level, Sampler(1.0, top_k=3))) == [0, 1, 2]
    assert list(probabilities(level, Sampler(1.0, top_p=0.45))) == [0, 1, 2, 3, 4]
    assert Sampler(0.0).draw(level, [0.99]) == [0]


def test_temperature_zero_takes_the_likeliest_token_whatever_the_draw() -> None:
    assert Sampler(0.0).draw(LOGITS, [0.0, 0.5, 0.999]) == [int(LOGITS.argmax())] * 3


def test_a_tiny_temperature_is_almost_greedy() -> None:
    for temperature in (1e-3, 1e-30, 1e-44, 1e-300):
        drawn = Sampler(temperature).draw(LOGITS, [0.0, 1 - 2**-53])
        assert drawn == [int(LOGITS.argmax())] * 2


def test_the_draw_of_a_token_depends_on_seed_lineage_and_index_alone() -> None:
    names = [(0, ()), (0, (0,)), (0, (0, 1)), (0, (1, 0)), (0, (10,)), (1, (0,)), (1, ())]
    values = {name: [Draws(*name).uniform(i) for i in range(5)] for name in names}
    assert len({value for row in values.values() for value in row}) == 5 * len(names)
    for name in reversed(names):
        draws = Draws(*name)
        assert [draws.uniform(i) for i in (4, 0, 3)] == [values[name][i] for i in (4, 0, 3)]


def test_a_draw_never_changes_between_versions() -> None:
    assert [Draws(7, (0, 3)).uniform(i) for i in range(2)] == [
        0.07721318256658372,
        0.25728719257820787,
    ]


def test_uniform_numbers_are_uniform() -> None:
    values = np.array([Draws(9, (i,)).uniform(i) for i in range(20_000)])
    assert values.min() >= 0.0
    assert values.max() < 1.0
    counts = np.histogram(values, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 19 + 4 * math.sqrt(38)


@pytest.mark.parametrize("spread", [1.0, 3.0, 8.0])
def test_tokens_too_unlikely_to_be_drawn_change_no_draw(spread: float) -> None:
    random = np.random.default_rng(11)
    for _ in range(20):
        logits = random.normal(0, spread, 5000).astype(np.float32)
        exact = np.exp((logits.astype(np.float64) - logits.max()) / 0.7)
        running = np.cumsum(exact)
        uniforms = random.random(200)
        places = np.searchsorted(running, uniforms * running[-1], side="right")
        assert Sampler(0.7).draw(logits, uniforms.tolist()) == places.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_logits_that_are_no_numbers_are_refused(value: float, temperature: float) -> None:
    logits = LOGITS.copy()
    logits[7] = value
    with pytest.raises(EngineError, match="damaged"):
        Sampler(temperature).draw(logits, [0.5])
    with pytest.raises(EngineError, match="damaged"):
        Sampler(temperature).draw(np.full(5, -np.inf, np.float32), [0.5])
