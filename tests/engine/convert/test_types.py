"""Smaller weights: directly, and through llama.cpp's own quantiser."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from engine import seedling
from engine.models.gguf import read_header
from engine.protocol.conversion import BodyType, Converting
from engine.seedling.checkpoint import write_checkpoint
from engine.verify.heads import head_beside, head_of
from tests.engine.convert.converting import Bodies, converted


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verifier whose rows K-quants fit into."""
    from tests.engine.checkpoints import build
    from tests.engine.checkpoints.families import Scale

    folder = tmp_path_factory.mktemp("wide") / "math-shepherd-mistral-7b-prm"
    return build("math-shepherd", folder, scale=Scale(width=256, layers=1))


@pytest.mark.parametrize(
    ("kind", "matrix"), [("q8_0", "Q8_0"), ("q6_k", "Q6_K"), ("q4_k_m", "Q4_K")]
)
def test_a_body_has_the_type_that_was_asked_for(
    wide: Path, tmp_path: Path, kind: BodyType, matrix: str
) -> None:
    out = tmp_path / "x.gguf"
    told: list[Converting] = []
    done = converted(wide, out, kind, told=told)
    header = read_header(out)
    kinds = {t.name: gguf.GGMLQuantizationType(t.kind).name for t in header.tensors}
    assert kinds["blk.0.attn_q.weight"] == matrix
    assert kinds["blk.0.attn_norm.weight"] == "F32"
    assert header.text("sapwood.prm.format") == done.format == "math-shepherd"
    assert done.bytes == out.stat().st_size
    assert list(tmp_path.iterdir()) == [out]
    doing = {message.doing for message in told}
    assert doing == {"writing", "checking"} | ({"quantising"} if "_k" in kind else set())
    assert all(0 <= message.done <= 1 for message in told)


def test_a_head_lies_beside_its_body_and_is_found_by_it(body: Bodies) -> None:
    out = body("qwen2.5-math-prm", "q8_0")
    header = read_header(out)
    assert header.text("sapwood.prm.format") == "qwen2.5-math-prm"
    assert sorted(out.parent.iterdir()) == [out, head_beside(out)]
    assert head_of(out).width == 64
    assert "output.weight" not in {tensor.name for tensor in header.tensors}


@pytest.mark.parametrize("role", ["generator", "verifier"])
def test_the_seedlings_checkpoint_becomes_the_file_it_was_made_from(
    role: str, tmp_path: Path
) -> None:
    shipped = seedling.generator_path() if role == "generator" else seedling.verifier_path()
    out = tmp_path / "x.gguf"
    format = None if role == "generator" else "seedling"
    converted(write_checkpoint(shipped, tmp_path / "folder"), out, format=format)
    theirs, ours = (
        {t.name: (t.tensor_type, t.data.tobytes()) for t in gguf.GGUFReader(path).tensors}
        for path in (shipped, out)
    )
    assert ours == theirs
    before, after = read_header(shipped).metadata, read_header(out).metadata
    same = {"general.architecture", *(k for k in before if k.startswith(("llama.", "tokenizer.")))}
    assert {key: after.get(key) for key in same} == {key: before[key] for key in same}
