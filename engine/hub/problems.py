"""What went wrong with the hub, in words, and what to do about it.

Nothing of an error's own text is passed on that could hold an address with a signature in it.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.protocol.events import Trouble

if TYPE_CHECKING:
    import httpx2

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LONG_WAIT = "Wait a little, then try again."


def explained(error: Exception, repository: str, file: str, endpoint: str) -> EngineError:
    """An error of a request, for people."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    match error:
        case EngineError():
            return error
        case OfflineModeIsEnabled():
            return _problem(
                f"{_of(repository, file)} is not on this machine, and HF_HUB_OFFLINE forbids to "
                "fetch it.",
                "Unset HF_HUB_OFFLINE to go online.",
            )
        case HfHubHTTPError():
            return _refusal(error.response, repository, file, endpoint)
        case httpx2.TimeoutException():
            return _problem(f"{endpoint} did not answer in time.", _LONG_WAIT)
        case httpx2.ConnectError() | httpx2.ProxyError():
            return _problem(
                f"{endpoint} cannot be reached: {_reason(error)}.",
                "Check the network; a mirror can be named with HF_ENDPOINT.",
            )
        case httpx2.TransportError():
            return _problem(
                f"The connection to {endpoint} broke off ({_reason(error)}).", "Try again."
            )
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return _problem(f"{endpoint} gave an answer that makes no sense: {_reason(error)}.")
        case OSError() if error.errno in _FULL:
            return EngineError(
                Trouble.STORAGE,
                f"The disk is full; what came of {file} is kept.",
                "Make room and do the same again, which goes on from there, or let "
                "'sapwood models remove' delete what came.",
            )
        case OSError():
            return EngineError(
                Trouble.STORAGE, f"{file} cannot be written: {error.strerror or error}."
            )
        case _:
            return _problem(f"{endpoint} cannot be used: {error}.")


def retry_after(error: Exception) -> float | None:
    """Seconds a hub that has had too many requests asks to wait; None where it does not."""
    response: httpx2.Response | None = getattr(error, "response", None)
    try:
        return None if response is None else float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None


def _refusal(response: httpx2.Response, repository: str, file: str, endpoint: str) -> EngineError:
    page = f"{endpoint}/{repository}"
    match response.headers.get("X-Error-Code"), response.status_code:
        case "GatedRepo", _:
            return _problem(
                f"{repository} is gated: its owner gives it to those who accept the licence.",
                f"Accept it at {page}; then {_how_to_sign_in()}",
            )
        case "EntryNotFound" | "RevisionNotFound", _ if file:
            return _problem(
                f"There is no file {file} in {repository}.", f"See {page} for what there is."
            )
        case "RepoNotFound", _:
            return _problem(
                f"There is no repository {repository}, or it is private.",
                f"Check the name; if it is private, {_how_to_sign_in()}",
            )
        case _, 401:
            return _problem(
                f"{endpoint} does not accept who asks for {repository} (401).",
                f"If you have access, {_how_to_sign_in()}",
            )
        case _, 403:
            return _problem(
                f"{endpoint} forbids access to {repository} (403).",
                "The token may lack the right to read it: see the settings of your account there.",
            )
        case _, 404:
            return _problem(
                f"{endpoint} has no {_of(repository, file)} (404).",
                f"See {page} for what there is.",
            )
        case _, 429:
            wait = response.headers.get("Retry-After", "")
            advice = f"Try again in {wait} s." if wait.isdigit() else _LONG_WAIT
            return _problem(f"{endpoint} has had too many requests from here (429).", advice)
        case _, status if status >= 500:
            return _problem(f"{endpoint} has trouble of its own ({status}).", _LONG_WAIT)
        case _, status:
            return _problem(f"{endpoint} refused {_of(repository, file)} ({status}).")


def _of(repository: str, file: str) -> str:
    return f"{file} of {repository}" if file else repository


def _how_to_sign_in() -> str:
    from huggingface_hub import get_token

    if get_token() is None:
        return "sign in with 'hf auth login' or put your token into HF_TOKEN."
    return "make sure that the token you use ('hf auth whoami') is of the account that has access."


def _reason(error: Exception) -> str:
    """The system's own word for it, where there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _problem(message: str, advice: str = "") -> EngineError:
    return EngineError(Trouble.MODEL, message, advice)
