"""Write a trained model as a GGUF file that llama.cpp reads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import gguf
import numpy as np

from engine.seedling.model import Model
from engine.seedling.tokenizer import END, PRE_TOKENIZER, SPECIAL, TURN_END, tokenizer

Role = Literal["generator", "verifier", "target"]

# A system message is left out on purpose: the stories need none, and its words
# would be noise to a model that knows only the words of the stories.
CHAT_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] != 'system' %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def export(model: Model, path: Path, role: Role) -> None:
    """Matrices as F16, gains as F32; the head is the embedding and not repeated."""
    writer = gguf.GGUFWriter(str(path), "llama")
    _describe(writer, model, role)
    _add_tokenizer(writer, role)
    for name, tensor in model.state_dict().items():
        values = tensor.detach().numpy()
        writer.add_tensor(name, values.astype(np.float16 if values.ndim == 2 else np.float32))
    path.parent.mkdir(parents=True, exist_ok=True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: gguf.GGUFWriter, model: Model, role: Role) -> None:
    shape = model.shape
    writer.add_name(f"seedling {role}")
    writer.add_license("apache-2.0")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_string("sapwood.demonstration", "simple arithmetic stories")
    if role == "verifier":
        writer.add_string("sapwood.prm.format", "seedling")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_vocab_size(len(tokenizer()))


def _add_tokenizer(writer: gguf.GGUFWriter, role: Role) -> None:
    known = tokenizer()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE_TOKENIZER)
    writer.add_token_list(known.tokens)
    writer.add_token_types(
        [
            gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL
            for token in known.tokens
        ]
    )
    writer.add_token_merges([f"{left} {right}" for left, right in known.merges])
    writer.add_eos_token_id(known.ids[TURN_END])
    writer.add_pad_token_id(known.ids[END])
    writer.add_add_bos_token(False)
    if role != "verifier":
        writer.add_chat_template(CHAT_TEMPLATE)
