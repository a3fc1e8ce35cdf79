"""`sapwood export`: a conversation or a run for reading elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode


@click.command()
@click.argument("what", metavar="SESSION|RUNLOG")
@click.option(
    "--format",
    type=click.Choice(("markdown", "json", "html")),
    help="Default: as the name of --out says, otherwise markdown.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: standard output."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def export(what: str, format: str | None, out: Path | None, force: bool) -> ExitCode:
    """Write a session (by its number) or the run of a log (by its path) for reading elsewhere.

    The page that --format html makes needs nothing but a browser.
    """
    from app.export import FORMATS, document_of_run, document_of_session
    from app.export import export as exported
    from app.export.file import save
    from app.printable import printable
    from app.store import Store

    if out is not None and out.is_file() and Path(what).is_file() and out.samefile(what):
        raise CommandError(
            ExitCode.USAGE,
            f"{out} is the run log itself, which would be lost. Name another file with --out.",
        )
    if out is not None and out.is_file() and not force:
        raise CommandError(
            ExitCode.USAGE,
            f"{out} is there already, and was left as it is. Name another file, or add --force.",
        )
    if format is None:
        suffix = out.suffix.lower() if out else ".md"
        if suffix not in FORMATS:
            raise CommandError(
                ExitCode.USAGE,
                f"The name {out} does not tell the format. Let it end in {', '.join(FORMATS)}, or "
                "say which with --format.",
            )
        format = FORMATS[suffix]
    if what.isdecimal() and len(what) < 20:  # no session has a number of more digits
        with Store() as store:
            document = document_of_session(store, int(what))
    else:
        document = document_of_run(Path(what))
    text = exported(document, format)
    if out is None:
        # A terminal obeys control characters; a file keeps the text as it is.
        output.data(printable(text) if sys.stdout.isatty() else text.encode())
    else:
        save(out, text)
    return ExitCode.OK
