"""What the installed llama.cpp can do, as one JSON object: `python -m engine.models.features`.

It is asked in a process of its own, so that whoever asks does not load llama.cpp.
"""

from __future__ import annotations

import sys

import msgspec


def describe() -> dict[str, object]:
    """Version, devices and instruction sets of the build that is installed."""
    import llama_cpp

    from engine.models import native_log
    from engine.models.devices import can_use_gpu, native_devices
    from engine.models.threads import default_threads

    native_log.install()
    return {
        "version": llama_cpp.__version__,
        "gpu": can_use_gpu(),
        "system": llama_cpp.llama_print_system_info().decode().strip(" |"),
        "threads": default_threads(),
        "devices": native_devices(),
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(describe()) + b"\n")
