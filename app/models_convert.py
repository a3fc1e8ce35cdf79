"""`sapwood models convert`: a checkpoint of the model hub made into a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.exit_codes import ExitCode

if TYPE_CHECKING:
    from engine.client.converting import BodyType

_KINDS = ("f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--type",
    "kind",
    type=click.Choice(_KINDS),
    default="q8_0",
    help="How weights are stored. Default: q8_0.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="The file to make.")
@click.option("--format", metavar="NAME", help="Format of a verifier that is not known.")
@click.option("--json", "as_json", is_flag=True, help="Write what was made as a JSON object.")
def convert(
    folder: Path, kind: BodyType, out: Path | None, format: str | None, as_json: bool
) -> ExitCode:
    """Make a GGUF file of the checkpoint in FOLDER, a Qwen2, Llama or Mistral from the model hub.

    Of a verifier with a head of its own, the head is put beside it. The file is compared with the
    checkpoint's tokenizer before it is put in place. Ctrl-C leaves nothing behind.
    """
    import asyncio

    from app.converting import convert_checkpoint
    from app.outcome import engine_errors

    with engine_errors():
        return asyncio.run(convert_checkpoint(folder, kind, out, format, as_json=as_json))
