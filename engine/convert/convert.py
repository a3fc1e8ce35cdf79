"""From a checkpoint's folder to a GGUF body and, of a verifier, a head beside it.

Both are written under other names and put in place together at the end, the body last: a body
in its place always has its head.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import prod
from pathlib import Path

from gguf import GGMLQuantizationType as Kind

from engine import catalogue
from engine.catalogue.sources import ToConvert, source
from engine.checkpoints.folder import checkpoint_name, open_checkpoint
from engine.checkpoints.safetensors import write_safetensors
from engine.convert.check import check_tokens
from engine.convert.names import Planned, plan_tensors
from engine.convert.shape import headed_kind, read_shape
from engine.convert.tokenizer import CONTROL, TokenizerFacts, read_tokenizer
from engine.convert.write import body_bytes, write_body
from engine.errors import EngineError
from engine.memory.sizes import size_text
from engine.models.chat import ChatTemplate
from engine.models.llama import default_threads
from engine.models.llama_quantize import QUANTISED, quantize
from engine.models.llama_vocabulary import vocabulary_of
from engine.protocol.conversion import Convert, Converted, Converting
from engine.protocol.events import Trouble
from engine.verify.formats import PrmFormat, bind
from engine.verify.heads import DIGEST_KEY, Head, head_beside, head_in, head_tensors

_BITS = {"q6_k": 6.7, "q5_k_m": 5.9, "q4_k_m": 5.2}
"""Bits a weight that a quantised file is given room for; it takes a little less."""
_HEADER = 32 << 20
"""Bytes that a vocabulary of any size fits into."""


def convert(order: Convert, tell: Callable[[Converting], None]) -> Converted:
    """Convert one checkpoint.

    Raises:
        EngineError: it cannot be converted; nothing was put in place.
    """
    out, work = Path(order.out), Path(order.work)
    checkpoint = open_checkpoint(Path(order.folder))
    name = checkpoint_name(checkpoint.folder)
    head = head_in(checkpoint)
    format = _format(order.format, name, checkpoint.config, head)
    shape = read_shape(checkpoint.config)
    if head is not None:
        head.check_width(shape.width, name)
    plan = plan_tensors(
        checkpoint.tensors, shape, head_tensors(checkpoint.tensors) if head else set()
    )
    control = {format.marker} | set(format.ids) if format and format.head else set()
    tokenizer = read_tokenizer(checkpoint.folder, plan[0].shape[0], control)
    matrices = Kind.Q8_0 if order.kind == "q8_0" else Kind.F16
    _check_room(order, plan, matrices)
    texts = {"general.name": name}
    try:
        if format is not None:
            texts["sapwood.prm.format"] = format.name
        if head is not None:
            about = {"sapwood.body": out.name, "sapwood.prm.format": texts["sapwood.prm.format"]}
            write_safetensors(work / "head", head.tensors, about)
            texts[DIGEST_KEY] = sha256((work / "head").read_bytes()).hexdigest()
        body = work / "body"
        write_body(
            body, plan, shape, tokenizer, texts, matrices, lambda p: tell(Converting("writing", p))
        )
        tell(Converting("checking", 0))
        _check_body(body, checkpoint.folder, tokenizer, format, head, name)
        if order.kind in QUANTISED:
            body = work / "quantised"
            threads = default_threads()
            quantize(
                work / "body",
                body,
                order.kind,
                threads,
                lambda p: tell(Converting("quantising", p)),
            )
        return _place(body, work / "head" if head else None, out, format)
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE, f"{out} could not be written: {error.strerror}.", "Make room."
        ) from None


def _format(
    asked: str | None, name: str, config: Mapping[str, object], head: Head | None
) -> PrmFormat | None:
    """The format of a verifier: as asked, as the catalogue has it by name, or as its head tells."""
    known = catalogue.load()
    if asked is None:
        for entry in known.verifiers.values():
            place = source(entry.file)
            if isinstance(place, ToConvert) and place.repository.rpartition("/")[2] == name:
                asked = entry.format
    if asked is None and head is not None:
        asked = head.family
    if asked is None:
        if kind := headed_kind(config):
            raise _headless(f"Models of the kind '{kind}'", name)
        return None
    format = known.format(asked)
    if format.head and head is None:
        raise _headless(f"Verifiers of the format '{asked}'", name)
    if head is not None and not format.head:
        raise EngineError(
            Trouble.USAGE,
            f"{name} has a head, which the format '{asked}' makes no use of.",
            f"Its head looks like those of '{head.family}'.",
        )
    return format


def _headless(which: str, name: str) -> EngineError:
    return EngineError(
        Trouble.MODEL,
        f"{which} have a head, and {name} has none of a known kind.",
        "Take the whole checkpoint of the process reward model, not of the model it was made from.",
    )


def _check_room(order: Convert, plan: list[Planned], matrices: Kind) -> None:
    needed = _HEADER + body_bytes(plan, matrices)
    if order.kind in QUANTISED:
        needed += int(sum(prod(tensor.shape) for tensor in plan) * _BITS[order.kind] / 8)
    free = shutil.disk_usage(order.work).free
    if free < needed:
        raise EngineError(
            Trouble.STORAGE,
            f"The conversion needs {size_text(needed)} of disk, and {size_text(free)} are free at "
            f"{Path(order.out).parent}.",
            "Make room, or choose another place with --out.",
        )


def _check_body(
    body: Path,
    folder: Path,
    tokenizer: TokenizerFacts,
    format: PrmFormat | None,
    head: Head | None,
    name: str,
) -> None:
    """Read the vocabulary as llama.cpp will, and compare it with the checkpoint's own."""
    control = {tokenizer.tokens[id] for id in tokenizer.special.values()}
    if format is not None and format.head:
        control |= {format.marker, *format.ids} & set(tokenizer.tokens)
    control = {text for text in control if tokenizer.types[tokenizer.tokens.index(text)] == CONTROL}
    with vocabulary_of(body) as vocabulary:
        check_tokens(folder / "tokenizer.json", vocabulary, sorted(control), name)
        if format is not None:
            bind(format, vocabulary, ChatTemplate(tokenizer.chat_template), head)


def _place(body: Path, head: Path | None, out: Path, format: PrmFormat | None) -> Converted:
    size = body.stat().st_size
    if head is not None:
        head.replace(head_beside(out))
    body.replace(out)
    return Converted(
        body=str(out),
        bytes=size,
        head=str(head_beside(out)) if head else None,
        format=format.name if format else None,
    )
