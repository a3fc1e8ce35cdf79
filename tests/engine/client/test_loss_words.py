"""What people are told of a lost process."""

from __future__ import annotations

import pytest

from engine.client.loss import explain
from engine.protocol import Trouble

DUMP = """\
llama_model_load: loading
GGML_ASSERT(n_tokens <= n_batch) failed
Fatal Python error: Aborted

Thread 0x00007f (most recent call first):
  File "x.py", line 3 in error
"""


@pytest.mark.parametrize(
    ("code", "tail", "kills", "trouble", "words"),
    [
        (-9, "", 1, Trouble.MEMORY, "the machine ran out of memory"),
        (-9, "an error", 0, Trouble.ENGINE, "killed from outside (SIGKILL)"),
        (-11, "", 1, Trouble.ENGINE, "SIGSEGV"),
        (-4, "", 0, Trouble.ENGINE, "processor features"),
        (-6, DUMP, 0, Trouble.ENGINE, "last words: GGML_ASSERT(n_tokens <= n_batch) failed"),
        (-6, "cudaMalloc failed: out of memory", 0, Trouble.MEMORY, "cudaMalloc failed"),
        (1, "Traceback\n  line\nKeyError: 3\n", 0, Trouble.ENGINE, "code 1; its last words: KeyE"),
        (0xC0000005, "", 0, Trouble.ENGINE, "it crashed"),
        (0xC0000017, "", 0, Trouble.MEMORY, "not enough memory"),
        (7, "", 0, Trouble.ENGINE, "exit code 7"),
        (-200, "", 0, Trouble.ENGINE, "signal 200"),
    ],
)
def test_each_ending_has_its_words(
    code: int, tail: str, kills: int, trouble: Trouble, words: str
) -> None:
    told, cause = explain(code, tail, memory_kills=kills)
    assert told is trouble
    assert words in cause
    assert not cause.endswith(".")
