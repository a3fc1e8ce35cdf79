"""Tokenizer files with the splitting rules and the ids of published models.

Only the few hundred tokens that are ever reached are there, at their real ids. The special ones are
in the vocabulary too, where published files have full ones below them: without, they would be given
the ids after the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

_CORPUS = (
    "Please reason step by step, and put your final answer within \\boxed{}.\n",
    "Tom has 12 apples. He buys 7 more apples. How many apples does he have?\n\n",
    "Step 1: Tom starts with 12 apples.\nStep 2: He buys 7 more, so he has 12 + 7 = 19 apples.\n",
    "Let's verify step by step: the solution is correct. Yes, it is. No, it is not.\n\n",
    "user\nsystem\nassistant\nIs the solution correct? yes or no\nThe answer is: \\boxed{19}.\n\n",
)
_TRAINED = 500


@dataclass(frozen=True, slots=True)
class _ByteLevel:
    """A byte-level BPE vocabulary.

    `texts` are tokens of ordinary text that have to have certain ids; each must be a merge of two
    others or of single bytes. `size` counts the ids before the first special token.
    """

    pattern: str
    size: int
    texts: Mapping[str, int]
    special: Mapping[str, int]
    normalizer: Any = None
    whole_words: bool = False
    bos: str | None = None


_QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_PATTERN = _QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_QWEN_TEXTS = {"\n\n": 271, ".\n\n": 382, " \n\n\n\n": 22701}
_QWEN_NAMES = (
    "endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start",
    "box_end", "quad_start", "quad_end", "vision_start", "vision_end", "vision_pad", "image_pad",
    "video_pad",
)  # fmt: skip
_QWEN_SPECIAL = {f"<|{name}|>": 151_643 + i for i, name in enumerate(_QWEN_NAMES)}
_LLAMA3_NAMES = {
    0: "<|begin_of_text|>", 1: "<|end_of_text|>", 4: "<|finetune_right_pad_id|>",
    6: "<|start_header_id|>", 7: "<|end_header_id|>", 8: "<|eom_id|>", 9: "<|eot_id|>",
}  # fmt: skip


def qwen(folder: Path, template: str, *, separator: bool = False, bos: str | None = None) -> None:
    """Qwen2.5's tokenizer.

    Args:
        separator: `<extra_0>` stands where the others have `<|quad_end|>`.
        bos: what the files call the beginning-of-sequence token; the tokenizer never adds it.
    """
    special = dict(_QWEN_SPECIAL)
    if separator:
        special = {"<extra_0>" if t == "<|quad_end|>" else t: i for t, i in special.items()}
    plan = _ByteLevel(_QWEN_PATTERN, 151_643, _QWEN_TEXTS, special, normalizers.NFC())
    _write(folder, _byte_level(plan), "Qwen2Tokenizer", template, bos, "<|im_end|>", None)


def llama3(folder: Path, template: str) -> None:
    """Llama 3's tokenizer."""
    special = {
        _LLAMA3_NAMES.get(i, f"<|reserved_special_token_{i}|>"): 128_000 + i for i in range(256)
    }
    texts = {"\n\n": 271, ".\n\n": 382, " \n\n\n\n": 23_535}
    plan = _ByteLevel(
        _LLAMA3_PATTERN, 128_000, texts, special, whole_words=True, bos="<|begin_of_text|>"
    )
    backend = _byte_level(plan)
    _write(folder, backend, "PreTrainedTokenizerFast", template, plan.bos, "<|eot_id|>", None)


def mistral(folder: Path) -> None:
    """The SentencePiece tokenizer of the first Mistral and of Llama 2, as tokenizer.json."""
    _write(folder, _sentencepiece(), "LlamaTokenizer", "", "<s>", "</s>", "<unk>")


def _write(
    folder: Path,
    backend: dict[str, Any],
    kind: str,
    template: str,
    bos: str | None,
    eos: str,
    unk: str | None,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(backend, ensure_ascii=False), "utf-8")
    about: dict[str, Any] = {
        "tokenizer_class": kind,
        "bos_token": bos,
        "eos_token": eos,
        "unk_token": unk,
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": {
            str(token["id"]): {k: v for k, v in token.items() if k != "id"}
            for token in backend["added_tokens"]
        },
    }
    if kind == "LlamaTokenizer":
        about |= {"add_bos_token": True, "add_eos_token": False, "legacy": True}
    else:
        about |= {"pad_token": "<|endoftext|>" if kind == "Qwen2Tokenizer" else eos}
    if template:
        about["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(about, ensure_ascii=False), "utf-8")


def _byte_level(plan: _ByteLevel) -> dict[str, Any]:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE())
    splitting: Any = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(plan.pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.pre_tokenizer = splitting
    backend.decoder = decoders.ByteLevel()
    if plan.normalizer is not None:
        backend.normalizer = plan.normalizer
    texts = {_in_bytes(text): token for text, token in plan.texts.items()}
    merges = [*_newlines(texts), *_learn(backend, alphabet)]
    tokens = _place(alphabet + ["".join(pair) for pair in merges], texts, plan.size, start=0)
    backend.model = models.BPE(
        vocab=tokens | dict(plan.special),
        merges=list(dict.fromkeys(merges)),
        ignore_merges=plan.whole_words,
    )
    return _finished(backend, plan.special, plan.bos)


def _in_bytes(text: str) -> str:
    return text.replace(" ", "Ġ").replace("\n", "Ċ")


def _newlines(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Merges that lead to tokens which end in line ends."""
    yield ("Ċ", "Ċ")
    yield ("ĊĊ", "ĊĊ")
    for text in texts:
        head = text.rstrip("Ċ")
        if head:
            yield (head, text[len(head) :])


def _learn(backend: Tokenizer, alphabet: list[str]) -> list[tuple[str, str]]:
    """The commonest merges of a small corpus, by the tokenizer's own splitting rule."""
    trainer = trainers.BpeTrainer(
        vocab_size=_TRAINED, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(_CORPUS * 3, trainer)
    return [tuple(pair) for pair in json.loads(backend.to_str())["model"]["merges"]]


def _place(names: list[str], fixed: Mapping[str, int], size: int, start: int) -> dict[str, int]:
    """Ids for `names` in order, from `start` and around those `fixed`, below `size`."""
    taken = set(fixed.values())
    free = (token for token in range(start, size) if token not in taken)
    tokens = dict(fixed)
    for name in names:
        if name not in tokens:
            tokens[name] = next(free)
    return tokens


def _sentencepiece() -> dict[str, Any]:
    control = {"<unk>": 0, "<s>": 1, "</s>": 2}
    size = 32_000
    learner = Tokenizer(models.BPE())
    splitting: Any = pre_tokenizers.Metaspace()
    learner.pre_tokenizer = splitting
    letters = sorted({*map(chr, range(33, 127)), "▁", "к", "и"})
    learnt = ("".join(pair) for pair in _learn(learner, letters))
    # Line ends are bytes, of which no piece is made.
    pieces = dict.fromkeys(piece for piece in learnt if set(piece) <= set(letters))
    # Single characters have the last ids, as SentencePiece orders them.
    fixed = {letter: size - len(letters) + i for i, letter in enumerate(letters)}
    fixed |= {"▁-": 387, "▁+": 648, "▁ки": 12_902}
    pieces = dict.fromkeys(["▁к", *pieces])
    numbered = _place(list(pieces), fixed, size, start=259)
    tokens = control | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)} | numbered
    merges = [
        (piece[:cut], piece[cut:])
        for piece in sorted({*pieces, *fixed} - {*letters}, key=lambda piece: tokens[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in tokens and piece[cut:] in tokens
    ]
    backend = Tokenizer(
        models.BPE(
            vocab=tokens, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    ending: Any = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.decoder = ending
    return _finished(backend, control, "<s>")


def _finished(backend: Tokenizer, special: Mapping[str, int], bos: str | None) -> dict[str, Any]:
    """The tokenizer as its file has it, with special tokens at their very ids."""
    whole = json.loads(backend.to_str())
    whole["added_tokens"] = [
        {
            "id": token,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for text, token in special.items()
    ]
    if bos is not None:
        whole["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": bos, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": bos, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {bos: {"id": bos, "ids": [special[bos]], "tokens": [bos]}},
        }
    return whole
