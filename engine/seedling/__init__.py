"""The embedded pair: a tiny generator and a tiny verifier for arithmetic stories.

They exist so that everything can be shown and tested without a download. How
they were made and what they can do is in `README.md` beside this file.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def generator_path() -> Path:
    """Where the generator's GGUF file lies."""
    return _data("seedling-generator.gguf")


def target_path() -> Path:
    """Where the larger generator's GGUF file lies, for which the generator writes drafts."""
    return _data("seedling-target.gguf")


def verifier_path() -> Path:
    """Where the verifier's GGUF file lies."""
    return _data("seedling-verifier.gguf")


def probe_path() -> Path:
    """The folder with the predictors for the generator's drafts and the target."""
    return _data("probe")


def _data(name: str) -> Path:
    return Path(str(files(__name__).joinpath("data", name)))
