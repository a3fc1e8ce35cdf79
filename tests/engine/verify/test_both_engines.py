"""The embedded pair with its verifier on llama.cpp and on torch."""

from __future__ import annotations

from bench.survivors import compare, engines
from engine.seedling.problems import held_out


def test_the_same_paths_survive_unless_their_scores_nearly_tie() -> None:
    with engines(threads=1) as pair:
        found = [compare(pair, problem.text) for problem in held_out(10, 7)]
    assert sum(comparison.decisions for comparison in found) > 20
    # llama.cpp computes in 16 bits where torch uses 32.
    assert max(comparison.largest for comparison in found) < 0.01
    for comparison in found:
        if comparison.divergence is not None:
            assert abs(comparison.divergence.margin) < 0.01
