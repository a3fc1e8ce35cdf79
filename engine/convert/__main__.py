"""`python -m engine.convert ORDER`: converts one checkpoint in a process of its own.

llama.cpp's quantiser cannot be stopped, and may abort on a bad file: it is the process that ends.
"""

from __future__ import annotations

import os
import sys

import msgspec

from engine.errors import EngineError
from engine.protocol.conversion import ConversionFailed, Convert, Converted, Converting
from engine.protocol.events import Trouble


def main() -> None:
    """Tell on standard output what the client of `engine.client.converting` reads."""
    output = os.dup(1)
    os.dup2(2, 1)  # whatever native code prints cannot touch the messages
    order = msgspec.json.decode(sys.argv[1].encode(), type=Convert)
    told = -1

    def tell(message: Converting | Converted | ConversionFailed) -> None:
        os.write(output, msgspec.json.encode(message) + b"\n")

    def progress(message: Converting) -> None:
        nonlocal told
        if int(message.done * 100) != told:
            told = int(message.done * 100)
            tell(message)

    try:
        from engine.convert.convert import convert

        tell(convert(order, progress))
    except EngineError as error:
        tell(ConversionFailed(error.trouble, error.message, error.advice))
    except ImportError as error:
        tell(
            ConversionFailed(
                Trouble.ENGINE,
                f"Converting needs the Python package '{error.name}', which is not installed.",
                "Install it with: pip install gguf tokenizers",
            )
        )
    except MemoryError:
        tell(ConversionFailed(Trouble.MEMORY, "There is not enough memory to convert it."))


if __name__ == "__main__":
    main()
