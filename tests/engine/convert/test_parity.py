"""A converted verifier gives the scores of its checkpoint, computed as its model card does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.convert.converting import Bodies
from tests.engine.verify.growing import grown
from tests.engine.verify.on_llama import verifier

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

TOLERANCE = 2e-3
PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
STEPS = (
    "Tom starts with 12 apples.",
    "He buys 7 more, so he has 12 + 7 = 19 apples.",
    "The answer is: \\boxed{19}.",
)
WRONG = ("He buys 7 more, so he has 12 + 7 = 20 apples.", "The answer is: \\boxed{20}.")

Checkpoints = Callable[["Family"], Path]


@pytest.mark.parametrize("precise", [False, True], ids=["searching", "scoring"])
@pytest.mark.parametrize(
    "family",
    [
        "math-shepherd",
        "rlhflow",
        "versaprm",
        "skywork",
        "qwen2.5-math-prm",
        "trl",
        "reasonflux-1.5b",
    ],
)
def test_scores_of_a_tree_grown_step_by_step_are_those_of_the_checkpoint(
    family: Family, precise: bool, body: Bodies, checkpoint: Checkpoints
) -> None:
    from tests.engine.checkpoints import whole_path_scores

    paths = (STEPS, (STEPS[0], *WRONG))
    with verifier(body(family), PROBLEM, precise=precise) as prm:
        found = grown(prm, paths)
        assert prm.fed_tokens == prm.unique_tokens()
    for path, scores in zip(paths, found, strict=True):
        expected = whole_path_scores(family, checkpoint(family), PROBLEM, path)
        assert len(scores) == len(path)
        assert scores == pytest.approx(expected, abs=TOLERANCE)
    assert found[0] != found[1]


def test_skywork_counts_each_line_of_a_step_and_gives_the_last_ones_score(
    body: Bodies, checkpoint: Checkpoints
) -> None:
    from tests.engine.checkpoints import whole_path_scores

    family = "skywork"
    lines = whole_path_scores(family, checkpoint(family), PROBLEM, STEPS)
    with verifier(body(family), PROBLEM) as prm:
        ((first, second),) = grown(prm, [["\n".join(STEPS[:2]), STEPS[2]]])
    assert (first, second) == pytest.approx((lines[1], lines[2]), abs=TOLERANCE)
