"""Checkpoints as the model hub has them, small enough for a test.

Configuration keys, tensor names, files, tokenizer rules and token ids are those of the published
models; widths are scaled down and the weights are random.
"""

from tests.engine.checkpoints.families import FAMILIES, Family, build
from tests.engine.checkpoints.whole import whole_path_scores

__all__ = ["FAMILIES", "Family", "build", "whole_path_scores"]
