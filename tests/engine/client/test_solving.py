"""Solving and cancelling, with a real worker process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from engine.client import LocalEngine, read_run
from engine.protocol import (
    AnyEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    Stop,
    TextAppended,
    Trouble,
)

from .driving import COMMAND, ending, engine, request, solve, worker_is_up, workers

ROOT = Path(__file__).parents[3]


def test_a_run_tells_everything_in_order_from_start_to_answer() -> None:
    events = solve(request())
    assert isinstance(events[0], RunStarted)
    assert ending(events).stop is Stop.COMPLETE
    assert [event.seq for event in events] == list(range(len(events)))
    assert sum(isinstance(event, StepFinished) for event in events) == 12


def test_the_log_tells_the_same(tmp_path: Path) -> None:
    events = solve(request(log=tmp_path / "log"))
    assert list(read_run(tmp_path / "log")) == events


def test_a_run_that_asked_for_no_log_leaves_none(home: Path) -> None:
    events = solve(request())
    assert isinstance(events[0], RunStarted)
    assert events[0].request == request()
    assert list((home / "runs").iterdir()) == []


def test_runs_are_solved_one_after_another() -> None:
    async def run() -> list[list[AnyEvent]]:
        order: list[list[AnyEvent]] = [[], [], []]

        async def one(index: int) -> None:
            async for event in local.solve(request(str(index))):
                order[index].append(event)
                if isinstance(event, RunStarted):
                    assert [bool(events) for events in order[index + 1 :]] == [False] * (2 - index)

        async with engine() as local:
            await asyncio.gather(*(one(index) for index in range(3)))
        return order

    for events in asyncio.run(run()):
        assert ending(events).stop is Stop.COMPLETE


@pytest.mark.parametrize("named", [True, False])
def test_cancel_takes_effect_within_a_decode_step(named: bool) -> None:
    async def run() -> tuple[list[AnyEvent], float]:
        events: list[AnyEvent] = []
        cancelled = 0.0
        async with engine() as local:
            async for event in local.solve(request("slow"), run="mine"):
                events.append(event)
                if isinstance(event, TextAppended) and not cancelled:
                    local.cancel("mine" if named else None)
                    cancelled = time.monotonic()
        return events, time.monotonic() - cancelled

    events, seconds = asyncio.run(run())
    assert ending(events).stop is Stop.CANCELLED
    assert seconds < 3  # the run would take ten seconds


def test_cancelling_another_run_changes_nothing() -> None:
    async def run() -> list[AnyEvent]:
        async with engine() as local:
            local.cancel()
            events = []
            async for event in local.solve(request()):
                events.append(event)
                local.cancel("another")
            return events

    assert ending(asyncio.run(run())).stop is Stop.COMPLETE


def test_a_run_can_be_cancelled_before_the_worker_is_up() -> None:
    async def run() -> list[AnyEvent]:
        async with engine() as local:
            asyncio.get_running_loop().call_soon(local.cancel)
            return [event async for event in local.solve(request("slow"))]

    assert ending(asyncio.run(run())).stop is Stop.CANCELLED


def test_a_hung_run_that_is_cancelled_ends_all_the_same() -> None:
    async def run() -> list[AnyEvent]:
        async with engine(cancel_after=0.5) as local:
            asyncio.get_running_loop().call_later(1.0, local.cancel)
            return [event async for event in local.solve(request("hang"))]

    events = asyncio.run(run())
    assert ending(events).stop is Stop.CANCELLED
    assert [event.seq for event in events] == list(range(len(events)))


def test_runs_of_one_name_do_not_mix() -> None:
    async def run() -> tuple[AnyEvent, AnyEvent]:
        async with engine() as local:
            first = local.solve(request(), run="same")
            await anext(first)
            (refused,) = [event async for event in local.solve(request(), run="same")]
            *_, last = [event async for event in first]
            return refused, last

    refused, last = asyncio.run(run())
    assert isinstance(refused, RunFailed)
    assert refused.trouble is Trouble.USAGE
    assert isinstance(last, RunFinished)


@pytest.mark.parametrize("kept", [False, True])
def test_leaving_the_loop_early_cancels_the_run(kept: bool) -> None:
    async def run() -> float:
        async with engine() as local:
            if kept:
                async with aclosing(local.solve(request("slow"))) as events:
                    async for event in events:
                        if isinstance(event, TextAppended):
                            break
            else:
                async for event in local.solve(request("slow")):
                    if isinstance(event, TextAppended):
                        break
            left = time.monotonic()
            async for _ in local.solve(request()):
                pass
            return time.monotonic() - left

    assert asyncio.run(run()) < 5  # the slow run takes ten seconds


def test_leaving_the_block_ends_the_worker_and_the_run() -> None:
    async def run() -> list[AnyEvent]:
        events: list[AnyEvent] = []

        async def consume(local: LocalEngine) -> None:
            events.extend([event async for event in local.solve(request("hang"))])

        async with engine() as local:
            consumer = asyncio.create_task(consume(local))
            await worker_is_up()
        assert workers() == []
        await consumer
        return events

    assert ending(asyncio.run(run())).stop is Stop.CANCELLED


def test_cancelling_the_task_ends_the_worker() -> None:
    async def run() -> None:
        async def work() -> None:
            async with engine() as local:
                async for _ in local.solve(request("hang")):
                    pass

        task = asyncio.create_task(work())
        await worker_is_up()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert workers() == []

    asyncio.run(run())


def test_the_worker_stays_for_the_next_run() -> None:
    async def run() -> set[int]:
        pids: set[int] = set()
        async with engine() as local:
            for _ in range(2):
                async for event in local.solve(request()):
                    if isinstance(event, RunFinished):
                        pids |= {worker.pid for worker in workers()}
        return pids

    assert len(asyncio.run(run())) == 1


def test_an_engine_works_only_inside_its_block() -> None:
    async def run() -> None:
        async for _ in engine().solve(request()):
            pass

    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(run())


@pytest.mark.skipif(sys.platform == "win32", reason="kill is not sudden there")
def test_a_client_that_is_killed_leaves_no_worker_behind() -> None:
    program = (
        "import asyncio, sys\n"
        "from engine.client import LocalEngine\n"
        "from engine.protocol import SolveRequest\n"
        "async def run():\n"
        f"    async with LocalEngine(command={COMMAND!r}) as local:\n"
        "        async for event in local.solve(SolveRequest(problem='hang')):\n"
        "            print(event.seq, flush=True)\n"
        "asyncio.run(run())\n"
    )
    client = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    assert client.stdout is not None
    client.stdout.readline()
    orphans = psutil.Process(client.pid).children()
    client.kill()
    client.wait()
    client.stdout.close()
    assert len(orphans) == 1
    assert psutil.wait_procs(orphans, timeout=5)[1] == []


def test_importing_the_client_imports_nothing_heavy() -> None:
    program = (
        "import engine.client, sys; "
        "print(*{'numpy', 'llama_cpp', 'rich', 'jinja2', 'torch', 'psutil', 'math_verify',"
        "'textual', 'engine.service', 'engine.models', 'engine.search'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
