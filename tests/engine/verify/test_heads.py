"""Heads: recognised by what their tensors are called and shaped like, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.checkpoints.safetensors import open_safetensors, write_safetensors
from engine.errors import EngineError
from engine.verify.heads import Head, find_head, head_tensors, read_head

WIDTH = 6
chance = np.random.default_rng(3)
HIDDEN = chance.normal(size=(4, WIDTH)).astype(np.float32)


def drawn(*shape: int) -> np.ndarray:
    return chance.normal(size=shape).astype(np.float32)


SKYWORK = {"v_head.summary.weight": drawn(1, WIDTH), "v_head.summary.bias": drawn(1)}
QWEN = {
    "score.0.weight": drawn(WIDTH, WIDTH),
    "score.0.bias": drawn(WIDTH),
    "score.2.weight": drawn(2, WIDTH),
    "score.2.bias": drawn(2),
}
TRL = {"score.weight": drawn(2, WIDTH), "score.bias": drawn(2)}
REASONFLUX = {"weight": drawn(1, WIDTH), "bias": drawn(1)}


def read(folder: Path, tensors: dict[str, np.ndarray], width: int = WIDTH) -> Head:
    path = folder / "head.safetensors"
    write_safetensors(path, tensors, {})
    return read_head(path, width)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


def test_skyworks_head_is_a_line_and_a_sigmoid(tmp_path: Path) -> None:
    expected = sigmoid(
        HIDDEN @ SKYWORK["v_head.summary.weight"][0] + SKYWORK["v_head.summary.bias"]
    )
    np.testing.assert_allclose(read(tmp_path, SKYWORK)(HIDDEN), expected, rtol=1e-5)


def test_qwens_head_has_two_layers_and_takes_the_second_class(tmp_path: Path) -> None:
    inner = np.maximum(HIDDEN @ QWEN["score.0.weight"].T + QWEN["score.0.bias"], 0)
    expected = softmax(inner @ QWEN["score.2.weight"].T + QWEN["score.2.bias"])[:, 1]
    np.testing.assert_allclose(read(tmp_path, QWEN)(HIDDEN), expected, rtol=1e-5)


def test_a_token_classifiers_head_takes_the_second_class(tmp_path: Path) -> None:
    expected = softmax(HIDDEN @ TRL["score.weight"].T + TRL["score.bias"])[:, 1]
    np.testing.assert_allclose(read(tmp_path, TRL)(HIDDEN), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("head", "name"),
    [(head, name) for head in (SKYWORK, QWEN, TRL, REASONFLUX) for name in head],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_head_that_lacks_a_tensor_is_refused(
    tmp_path: Path, head: dict[str, np.ndarray], name: str
) -> None:
    left = {other: tensor for other, tensor in head.items() if other != name}
    with pytest.raises(EngineError, match=rf"head\.safetensors is not whole: {name} is missing\."):
        read(tmp_path, left)


def test_reasonfluxs_head_stands_alone_without_a_name(tmp_path: Path) -> None:
    expected = sigmoid(HIDDEN @ REASONFLUX["weight"][0] + REASONFLUX["bias"])
    np.testing.assert_allclose(read(tmp_path, REASONFLUX)(HIDDEN), expected, rtol=1e-5)


def test_a_head_is_found_among_the_tensors_of_a_whole_checkpoint(tmp_path: Path) -> None:
    body = {"model.norm.weight": drawn(WIDTH), "lm_head.weight": drawn(9, WIDTH)}
    assert read(tmp_path, body | SKYWORK).family == "skywork"
    assert read(tmp_path, body | QWEN).family == "qwen2.5-math-prm"
    assert head_tensors(body | QWEN) == set(QWEN)
    assert head_tensors(body) == set()


def test_scores_far_out_are_0_and_1(tmp_path: Path) -> None:
    head = read(tmp_path, SKYWORK)
    scores = head(np.concatenate([HIDDEN, -HIDDEN]) * 1e30)
    assert set(scores.tolist()) <= {0.0, 1.0} or (scores >= 0).all()
    assert np.isfinite(scores).all()


def test_a_checkpoint_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has no head that scores steps") as caught:
        read(tmp_path, {"lm_head.weight": drawn(9, WIDTH)})
    assert "not of the model it was made from" in caught.value.advice


def test_a_head_of_another_models_width_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="hidden states of 6 values, and this model's have 8"):
        read(tmp_path, SKYWORK, width=8)


@pytest.mark.parametrize(
    ("tensors", "name"),
    [
        (SKYWORK | {"v_head.summary.weight": drawn(3, WIDTH)}, "v_head.summary.weight"),
        (SKYWORK | {"v_head.summary.bias": drawn(2)}, "v_head.summary.bias"),
        (QWEN | {"score.2.weight": drawn(1, WIDTH)}, "score.2.weight"),
        (QWEN | {"score.2.weight": drawn(2, WIDTH + 1)}, "score.2.weight"),
        (TRL | {"score.weight": drawn(2)}, "score.weight"),
    ],
)
def test_shapes_that_do_not_fit_together_are_refused(
    tmp_path: Path, tensors: dict[str, np.ndarray], name: str
) -> None:
    with pytest.raises(EngineError, match=f"no kind that Sapwood knows: {name} has the shape"):
        read(tmp_path, tensors)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_head_with_values_that_are_no_numbers_is_refused(tmp_path: Path, value: float) -> None:
    weight = SKYWORK["v_head.summary.weight"].copy()
    weight[0, 2] = value
    with pytest.raises(EngineError, match="holds values that are no numbers"):
        read(tmp_path, SKYWORK | {"v_head.summary.weight": weight})


def test_the_tensors_of_a_head_are_kept_under_their_names(tmp_path: Path) -> None:
    path = tmp_path / "head.safetensors"
    write_safetensors(path, QWEN, {})
    head = find_head(open_safetensors(path).tensors, "it")
    assert {n: t.tolist() for n, t in head.tensors.items()} == {
        n: t.tolist() for n, t in QWEN.items()
    }
