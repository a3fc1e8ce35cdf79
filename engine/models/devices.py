"""The devices that the installed llama.cpp can compute on, as it lists them itself."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

_KINDS: tuple[Literal["cpu", "gpu", "igpu", "accel"], ...] = ("cpu", "gpu", "igpu", "accel")
"""In the order of `ggml_backend_dev_type`; a graphics processor of either kind has memory."""


class Native(msgspec.Struct, frozen=True):
    """A device of llama.cpp. Sizes in bytes, as its driver reports them at that moment."""

    name: str
    """CUDA0, Metal, Vulkan0 …"""
    description: str
    backend: str
    """CUDA, Metal, Vulkan, CPU …"""
    kind: Literal["cpu", "gpu", "igpu", "accel"]
    free: int
    total: int


def native_devices() -> list[Native]:
    """All of them, with the memory that is free now. Loads llama.cpp."""
    libraries = _libraries()
    if libraries is None:
        return []
    registry, base = libraries
    found = []
    for index in range(registry.ggml_backend_dev_count()):
        device = registry.ggml_backend_dev_get(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        base.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        kind = base.ggml_backend_dev_type(device)
        found.append(
            Native(
                _text(base.ggml_backend_dev_name(device)),
                _text(base.ggml_backend_dev_description(device)),
                _text(base.ggml_backend_reg_name(base.ggml_backend_dev_backend_reg(device))),
                _KINDS[kind] if kind < len(_KINDS) else "accel",
                free.value,
                total.value,
            )
        )
    return found


def can_use_gpu() -> bool:
    """Whether the installed llama.cpp is built for a GPU, be there one or not."""
    import llama_cpp

    return bool(llama_cpp.llama_supports_gpu_offload())


def handle(name: str) -> int | None:
    """llama.cpp's pointer to the device of this name."""
    libraries = _libraries()
    if libraries is None:
        return None
    registry, base = libraries
    for index in range(registry.ggml_backend_dev_count()):
        device = registry.ggml_backend_dev_get(index)
        if _text(base.ggml_backend_dev_name(device)) == name:
            return device
    return None


def _text(name: bytes) -> str:
    return name.decode(errors="replace")


@cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL] | None:
    """The two that know the devices, which llama.cpp's Python binding leaves out."""
    import llama_cpp

    folder = Path(llama_cpp.__file__).parent / "lib"
    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    prefix = "" if sys.platform == "win32" else "lib"
    try:
        registry = ctypes.CDLL(str(folder / f"{prefix}ggml{ending}"))
        base = ctypes.CDLL(str(folder / f"{prefix}ggml-base{ending}"))
    except OSError:
        return None
    registry.ggml_backend_dev_count.restype = ctypes.c_size_t
    registry.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    registry.ggml_backend_dev_get.restype = ctypes.c_void_p
    for function in (
        base.ggml_backend_dev_name,
        base.ggml_backend_dev_description,
        base.ggml_backend_reg_name,
    ):
        function.argtypes = [ctypes.c_void_p]
        function.restype = ctypes.c_char_p
    base.ggml_backend_dev_backend_reg.argtypes = [ctypes.c_void_p]
    base.ggml_backend_dev_backend_reg.restype = ctypes.c_void_p
    base.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
    base.ggml_backend_dev_type.restype = ctypes.c_int
    size = ctypes.POINTER(ctypes.c_size_t)
    base.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    base.ggml_backend_dev_memory.restype = None
    return registry, base
