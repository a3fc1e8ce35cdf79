"""What the installed llama.cpp can do, as one JSON object: `python -m engine.models.features`.

It is asked in a process of its own, so that whoever asks does not load llama.cpp.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def describe() -> dict[str, object]:
    """Version, devices and instruction sets of the build that is installed."""
    import llama_cpp

    from engine.models import native_log
    from engine.models.threads import default_threads

    native_log.install()
    return {
        "version": llama_cpp.__version__,
        "gpu": bool(llama_cpp.llama_supports_gpu_offload()),
        "system": llama_cpp.llama_print_system_info().decode().strip(" |"),
        "threads": default_threads(),
        "devices": list(_devices(Path(llama_cpp.__file__).parent / "lib")),
    }


def _devices(folder: Path) -> Iterator[str]:
    """llama.cpp's own list, which its Python binding does not have."""
    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    prefix = "" if sys.platform == "win32" else "lib"
    try:
        registry = ctypes.CDLL(str(folder / f"{prefix}ggml{ending}"))
        base = ctypes.CDLL(str(folder / f"{prefix}ggml-base{ending}"))
    except OSError:
        return
    registry.ggml_backend_dev_count.restype = ctypes.c_size_t
    registry.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    registry.ggml_backend_dev_get.restype = ctypes.c_void_p
    for function in (base.ggml_backend_dev_name, base.ggml_backend_dev_description):
        function.argtypes = [ctypes.c_void_p]
        function.restype = ctypes.c_char_p
    for index in range(registry.ggml_backend_dev_count()):
        device = registry.ggml_backend_dev_get(index)
        name = base.ggml_backend_dev_name(device).decode(errors="replace")
        yield f"{name}: {base.ggml_backend_dev_description(device).decode(errors='replace')}"


if __name__ == "__main__":
    print(json.dumps(describe()))
