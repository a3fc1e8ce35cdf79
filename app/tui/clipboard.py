"""Copying text out of the terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping

_LIMIT = 2.0
"""Seconds a tool has."""


def native_tool(environment: Mapping[str, str], platform: str = sys.platform) -> list[str] | None:
    """The command that takes text on standard input, or None where the clipboard is elsewhere:
    over SSH it is the one of the terminal, not of this machine."""
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return None
    candidates: list[list[str]] = []
    if platform == "darwin":
        candidates.append(["pbcopy"])
    elif platform == "win32":
        candidates.append(["clip.exe"])
    else:
        if environment.get("WAYLAND_DISPLAY"):
            candidates.append(["wl-copy"])
        if environment.get("DISPLAY"):
            candidates += [["xclip", "-selection", "clipboard"], ["xsel", "-ib"]]
        if "microsoft" in os.uname().release.lower():
            candidates.append(["clip.exe"])
    return next((command for command in candidates if shutil.which(command[0])), None)


async def copy_natively(text: str) -> bool:
    """Copy with a tool of the system; False if there is none or it does not work."""
    command = native_tool(os.environ)
    if command is None:
        return False
    # clip.exe takes anything but UTF-16 for the code page of the machine.
    data = text.encode("utf-16" if command[0] == "clip.exe" else "utf-8")
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(data), _LIMIT)
    except TimeoutError:
        process.kill()
        return False
    return process.returncode == 0
