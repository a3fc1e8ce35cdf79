"""What was exported, into a file."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from app.errors import CommandError
from app.exit_codes import ExitCode


def save(path: Path, text: str) -> None:
    """Write the file in one go: a full disk does not cost what was there before.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a device or a pipe takes it as it comes
            path.write_text(text, encoding="utf-8", newline="")
            return
        path = path.resolve()  # what a link points at, not the link
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            draft.write_text(text, encoding="utf-8", newline="")
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(
            ExitCode.STORAGE,
            f"{path} could not be written ({error.strerror}). Name another file.",
        ) from error
