"""llama.cpp's own quantiser, for the types that mix several block formats in one file."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path

import llama_cpp

from engine.errors import EngineError
from engine.models import native_log
from engine.protocol.events import Trouble

QUANTISED = {
    "q6_k": llama_cpp.LLAMA_FTYPE_MOSTLY_Q6_K,
    "q5_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_K_M,
    "q4_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
}
_TENSOR = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")


def quantize(
    source: Path, target: Path, kind: str, threads: int, progress: Callable[[float], None]
) -> None:
    """Write a model file anew with smaller weights.

    It cannot be stopped but by ending the process.

    Args:
        kind: a key of `QUANTISED`.
        progress: told of the part of the tensors that is begun, from 0 to 1.

    Raises:
        EngineError: llama.cpp cannot do it.
    """
    native_log.install()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = QUANTISED[kind]
    params.nthread = threads

    def listen(message: str) -> None:
        if found := _TENSOR.search(message):
            progress(int(found[1]) / int(found[2]))

    with native_log.heard_by(listen):
        status = llama_cpp.llama_model_quantize(
            os.fsencode(source), os.fsencode(target), ctypes.pointer(params)
        )
    if status:
        reason = native_log.last_error() or f"status {status}"
        raise EngineError(Trouble.ENGINE, f"llama.cpp cannot quantise {source.name}: {reason}.")
