"""Which models can draft for which, before anything is opened."""

from __future__ import annotations

import pytest

from engine.client.drafting import acceptance
from engine.errors import EngineError


def test_drafts_are_accepted_by_meaning_where_predictors_are_there() -> None:
    assert acceptance("seedling", "seedling-target") == "semantic"
    assert acceptance("seedling-target", "seedling") == "tokens"


def test_a_model_with_other_tokens_cannot_draft() -> None:
    with pytest.raises(EngineError, match="other tokens than the generator"):
        acceptance("smollm2-135m-instruct", "seedling")
