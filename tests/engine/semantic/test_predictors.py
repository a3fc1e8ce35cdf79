"""Predictors are tied to the model that they were trained on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from engine.checkpoints.safetensors import open_safetensors, write_safetensors
from engine.checkpoints.tensors import values
from engine.errors import EngineError
from engine.semantic.acceptance import Acceptance
from engine.semantic.features import Feature, all_layers, feature, size
from engine.semantic.predictors import Predictor, Role, Subject, digest_of, load, save, shape

MODEL = Subject("a" * 64, "some model", layers=3, width=40)


def predictor(role: Role = "draft", kind: Feature = "last", seed: int = 0) -> Predictor:
    rng = np.random.default_rng(seed)
    sizes = shape(role, size(kind, MODEL.layers, MODEL.width), MODEL.width)
    layers = tuple(
        (
            rng.standard_normal((outputs, inputs), np.float32) / 10,
            rng.standard_normal(outputs).astype(np.float32),
        )
        for inputs, outputs in pairwise(sizes)
    )
    return Predictor(role, kind, layers)


def test_the_papers_shapes_at_the_papers_widths() -> None:
    assert shape("target", 5120, 5120) == (5120, 2048, 512, 1)
    assert shape("draft", 1536, 1536) == (1536, 512, 256, 1)


@pytest.mark.parametrize("kind", ["last", "stacked", "concatenated"])
def test_a_predictor_comes_back_as_it_was_saved(tmp_path: Path, kind: Feature) -> None:
    saved = predictor("target", kind)
    save(tmp_path / "one.safetensors", saved, MODEL)
    loaded = load(tmp_path / "one.safetensors", "target", MODEL)
    means = np.random.default_rng(1).standard_normal((5, 3, 40)).astype(np.float32)
    found = loaded(feature(kind, means))
    assert found.shape == (5,)
    assert ((found > 0) & (found < 1)).all()
    np.testing.assert_array_equal(found, saved(feature(kind, means)))


def test_what_a_feature_is_of() -> None:
    means = np.arange(12.0).reshape(1, 3, 4)
    assert feature("last", means).tolist() == [[8, 9, 10, 11]]
    assert feature("stacked", means).tolist() == [[4, 5, 6, 7]]
    assert feature("concatenated", means).tolist() == [list(range(12))]
    assert [all_layers(kind) for kind in ("last", "stacked", "concatenated")] == [False, True, True]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(MODEL, digest="b" * 64), "not on the file of some model"),
        (replace(MODEL, width=64), "belongs to another model"),
        (replace(MODEL, layers=2), "belongs to another model"),
    ],
)
def test_another_models_predictor_is_refused(tmp_path: Path, other: Subject, told: str) -> None:
    save(tmp_path / "one.safetensors", predictor(), MODEL)
    with pytest.raises(EngineError, match=told):
        load(tmp_path / "one.safetensors", "draft", other)


def test_the_predictor_of_the_other_role_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "one.safetensors", predictor("draft"), MODEL)
    with pytest.raises(EngineError, match="the predictor of a draft, not of a target"):
        load(tmp_path / "one.safetensors", "target", MODEL)


def test_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    save(path, predictor(), MODEL)
    stored = open_safetensors(path)
    tensors = {name: values(tensor) for name, tensor in stored.tensors.items()}
    whole = path.read_bytes()

    path.write_bytes(whole[:-9])
    with pytest.raises(EngineError):
        load(path, "draft", MODEL)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(EngineError):
        load(path, "draft", MODEL)

    bad = dict(tensors)
    bad["fc2.weight"] = np.full_like(bad["fc2.weight"], np.nan)
    write_safetensors(path, bad, stored.metadata)
    with pytest.raises(EngineError, match=r"fc2\.weight holds values that are no numbers"):
        load(path, "draft", MODEL)

    write_safetensors(path, {**tensors, "fc1.bias": tensors["fc1.bias"][:3]}, stored.metadata)
    with pytest.raises(EngineError, match=r"fc1\.bias has the shape \(3,\)"):
        load(path, "draft", MODEL)

    del tensors["fc3.bias"]
    write_safetensors(path, tensors, stored.metadata)
    with pytest.raises(EngineError, match=r"fc3\.bias is missing"):
        load(path, "draft", MODEL)

    write_safetensors(path, tensors, stored.metadata | {"sapwood.probe.version": "9"})
    with pytest.raises(EngineError, match="no predictor that this version"):
        load(path, "draft", MODEL)
    with pytest.raises(EngineError, match="There is no predictor"):
        load(tmp_path / "none.safetensors", "draft", MODEL)


def test_a_model_is_known_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"weights")
    (tmp_path / "two").write_bytes(b"weightz")
    assert digest_of(tmp_path / "one") != digest_of(tmp_path / "two")


def test_the_rule_of_acceptance() -> None:
    rule = Acceptance()
    assert rule.probability(0.5, 0.25) == 1.0
    assert rule.probability(0.2, 0.4) == 0.5
    assert rule.probability(0.3, 0.0) == 0.0
    assert Acceptance(floor=0.7).probability(0.2, 0.4) == 0.0
    assert Acceptance(floor=0.7).probability(0.32, 0.4) == pytest.approx(0.8)
