"""Models are opened as a plan says, planned again before each run, and never beyond the budget."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import seedling
from engine.errors import EngineError
from engine.memory.estimate import CacheType
from engine.memory.ledger import Ledger, ledger_file
from engine.memory.options import Job, Strategy
from engine.memory.record import Records, records_file
from engine.memory.sizes import GIB, MIB
from engine.models.base import Span
from engine.models.gguf import Header
from engine.models.llama import LlamaModel
from engine.models.stop import StopSignal
from engine.protocol import Trouble
from engine.service.model_pool import ModelPool, Opened
from engine.service.planning import Ask

JOB = Job(n=4, width=2, context=1024)
LOW = 101 * MIB
"""Too little for both models of the seedling at once."""


class Pool:
    """A pool, and what it has told."""

    def __init__(self) -> None:
        self.pool = ModelPool()
        self.warnings: list[str] = []

    def open(self, limit: int | None = None, *, job: Job = JOB, force: bool = False) -> Opened:
        ask = Ask(seedling.generator_path(), seedling.verifier_path(), job, limit, force)

        def loading(path: Path):
            def tell(header: Header, done: float) -> None:
                return None

            return tell

        return self.pool.open(ask, StopSignal(), loading, lambda code, text: self.warn(text))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.pool.close()


def write(models: Opened) -> list[bytes]:
    """Logits of both models in turn."""
    assert models.verifier is not None
    pair = (models.generator, models.verifier)
    return [
        model.forward([Span((0,), [token, 8])]).tobytes() for token in (5, 6, 7) for model in pair
    ]


def test_with_ample_memory_both_hold_all_paths(pool: Pool) -> None:
    models = pool.open(GIB)
    assert models.planned.option.strategy is Strategy.COLLOCATED
    assert models.generator.capacity == 4 * 1024
    assert models.turns is None
    assert pool.warnings == []


def test_where_one_fits_they_take_turns_and_compute_the_same(pool: Pool) -> None:
    expected = write(pool.open(GIB))
    models = pool.open(LOW)
    assert models.turns is not None
    assert write(models) == expected
    assert models.turns.changes == 5
    memory = models.memory()
    assert memory["generator"].weights == 0
    assert memory["generator"].offloaded > MIB
    assert memory["verifier"].offloaded == 0
    assert memory["verifier"].cache_used > 0


def test_what_changes_of_turn_took_is_what_the_next_plan_expects(pool: Pool) -> None:
    models = pool.open(LOW)
    write(models)
    assert models.turns is not None
    pool.pool.remember(models)
    took = [
        models.turns.there_and_back(held.model)
        for held in pool.pool._held.values()
        if isinstance(held.model, LlamaModel)
    ]
    assert None not in took
    option = pool.open(LOW).planned.option
    assert option.turn == pytest.approx(sum(filter(None, took)) / 2)


def test_forks_and_drops_do_not_wake_who_waits(pool: Pool) -> None:
    models = pool.open(LOW)
    assert models.turns is not None
    assert models.verifier is not None
    models.verifier.forward([Span((0,), [5, 6])])
    models.generator.forward([Span((0,), [5, 6])])
    changes = models.turns.changes
    models.verifier.fork(0, 1)
    models.verifier.drop(0)
    assert models.verifier.length(1) == 2
    assert models.verifier.vocabulary.tokenize("Tom")
    assert models.turns.changes == changes


def test_a_changed_budget_opens_caches_anew_and_keeps_the_weights(pool: Pool) -> None:
    first = pool.open(GIB)
    weights = {role: held.weights for role, held in pool.pool._held.items()}
    small = pool.open(105 * MIB)
    assert small.generator.capacity < first.generator.capacity
    assert {role: held.weights for role, held in pool.pool._held.items()} == weights
    again = pool.open(GIB)
    assert again.generator.capacity == first.generator.capacity


def test_an_unchanged_plan_opens_nothing_anew(pool: Pool) -> None:
    first = pool.open(GIB)
    first.generator.forward([Span((0,), [5, 6])])
    second = pool.open(GIB)
    assert second.generator is first.generator
    assert second.generator.used == 0


def test_a_quantised_cache_takes_fewer_bytes(pool: Pool) -> None:
    sizes = []
    for cache in (CacheType.F16, CacheType.Q8_0, CacheType.Q4_0):
        models = pool.open(GIB, job=Job(4, 2, 1024, cache))
        models.generator.forward([Span((0,), [5, 6])])
        memory = models.memory()["generator"]
        sizes.append((memory.cache_used + memory.cache_free) // 32)
    assert sizes[0] > sizes[1] > sizes[2]


def test_what_does_not_fit_is_refused_and_tried_all_the_same_if_forced(pool: Pool) -> None:
    with pytest.raises(EngineError) as refused:
        pool.open(60 * MIB)
    assert refused.value.trouble is Trouble.MEMORY
    assert "need at least" in refused.value.message
    assert refused.value.forcible
    models = pool.open(60 * MIB, force=True)
    assert write(models)
    assert "more than may be used" in pool.warnings[0]


def test_a_shorter_context_than_asked_is_told(pool: Pool) -> None:
    pool.open(GIB)  # what is measured now is counted from the next plan on
    least = pool.open(GIB).planned.plan.least
    models = pool.open(least + MIB)
    assert models.planned.option.job.context < 1024
    assert "longer ones end there" in pool.warnings[0]


def test_what_was_measured_once_is_kept_and_not_measured_again(pool: Pool) -> None:
    pool.open(GIB)
    path = records_file()
    kept = path.read_bytes()
    assert kept.count(b"\n") == 2
    for line in kept.splitlines():
        assert b'"measured"' in line
    pool.open(GIB, job=Job(8, 2, 1024))
    assert path.read_bytes() == kept
    assert Records(path).surplus("other", "f16", "cpu") == 0


def test_others_are_told_what_is_taken_until_it_is_given_back(pool: Pool) -> None:
    models = pool.open(GIB)
    written = ledger_file().read_bytes()
    assert str(models.planned.option.bytes).encode() in written
    pool.pool.close()
    assert ledger_file().read_bytes() == b"[]"


def test_what_another_run_holds_is_not_planned_with(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = pool.open().planned.plan.budget.bytes
    code = (
        "import sys; from engine.memory.ledger import *; l = Ledger(ledger_file())\n"
        "l.promise('RAM', 4 << 30, placed=False); print(flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout is not None
        other.stdout.readline()
        assert pool.open().planned.plan.budget.bytes < free - 3 * GIB
        monkeypatch.setattr("engine.memory.plan.MARGIN", 1 << 50)
        with pytest.raises(EngineError, match=f"process {other.pid} holds 4.0 GiB"):
            pool.open()
    finally:
        other.kill()
        other.wait()
    assert Ledger(ledger_file()).others("RAM") == []


_OUT_OF_MEMORY = """
import resource, psutil, sys
from pathlib import Path
from engine import seedling
from engine.errors import EngineError
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal
weights = LlamaWeights(seedling.generator_path())
limit = psutil.Process().memory_info().vms + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    LlamaModel(weights, capacity=1 << 20, paths=4, outputs=4, stop=StopSignal())
except EngineError as error:
    print(error.trouble.value, error.message)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_memory_that_cannot_be_had_is_named_as_such() -> None:
    ran = subprocess.run([sys.executable, "-c", _OUT_OF_MEMORY], capture_output=True, text=True)
    assert ran.stdout.startswith("memory There is no memory for 1,048,576 cells"), ran.stderr
