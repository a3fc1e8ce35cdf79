"""A plan shares a budget between two models, says why, and never exceeds it."""

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.memory.beside import plan_beside
from engine.memory.devices import Device, Kind
from engine.memory.estimate import Facts
from engine.memory.options import Job, Strategy
from engine.memory.plan import MARGIN, budget_for, make_plan
from engine.memory.roofline import Load, Speed, Work
from engine.memory.sizes import GIB, MIB, parse_size, size_text
from engine.memory.speed import named
from engine.memory.strategies import Pair
from tests.engine.memory.shapes import LARGE, PROCESSOR, SMALL, on, ram

GPU = named("RTX 3070 Ti")
REDUCTIONS = {Strategy.SMALLER_N, Strategy.SMALLER_CONTEXT}
PAIRS = [(SMALL, SMALL), (SMALL, LARGE), (LARGE, SMALL)]


def test_with_ample_memory_everything_is_held_at_once() -> None:
    chosen = make_plan(SMALL, LARGE, Job(n=16), on(named("RTX 4090"))).chosen
    assert chosen is not None
    assert chosen.verifier is not None
    assert chosen.strategy is Strategy.COLLOCATED
    assert chosen.generator.paths == chosen.verifier.paths == 16
    assert chosen.generator.cells == 16 * 2048


def test_where_memory_is_short_both_caches_hold_about_as_many_paths() -> None:
    """What falls out of the verifier's is read again, as in the generator's."""
    chosen = make_plan(SMALL, LARGE, Job(n=16), on(GPU, GPU.free - MARGIN)).chosen
    assert chosen is not None
    assert chosen.verifier is not None
    assert chosen.strategy is Strategy.COLLOCATED
    assert chosen.verifier.paths <= chosen.generator.paths <= chosen.verifier.paths + 2
    assert chosen.generator.paths < 16


def test_many_paths_on_a_small_card_are_quicker_with_the_idle_model_in_ram() -> None:
    budget = on(GPU, GPU.free - MARGIN)
    chosen = make_plan(LARGE, SMALL, Job(n=64), budget).chosen
    both = Pair(LARGE, SMALL, Job(n=64), budget).collocated()
    assert chosen is not None
    assert both is not None
    assert chosen.strategy is Strategy.IDLE_MODEL
    assert chosen.seconds < both.seconds


def test_without_a_known_link_nothing_is_planned_to_be_moved() -> None:
    plan = make_plan(LARGE, SMALL, Job(n=16), on(replace(GPU, link=None)))
    moved = {Strategy.IDLE_CACHE, Strategy.IDLE_MODEL}
    assert moved.isdisjoint(option.strategy for option in plan.options)


def test_on_unified_memory_and_in_ram_no_cache_is_moved_and_no_layer_left_out() -> None:
    for device in (named("M2 16 GB"), ram(16)):
        plan = make_plan(SMALL, SMALL, Job(), on(device))
        found = {option.strategy for option in plan.options}
        assert found == {Strategy.COLLOCATED, Strategy.IDLE_MODEL, Strategy.IDLE_AGAIN}


@pytest.mark.parametrize("device", [GPU, named("M2 16 GB"), ram(16)])
@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_slower_is_listed_only_if_it_takes_less_and_says_how_much(
    pair: tuple[Facts, Facts], device: Device
) -> None:
    """In RAM, copies of both caches may take more than the model that leaves."""
    options = make_plan(*pair, Job(n=16), on(device)).options
    asked = [option for option in options if option.strategy not in REDUCTIONS]
    assert asked == sorted(asked, key=lambda option: option.seconds)
    for quicker, slower in pairwise(asked):
        assert slower.bytes < quicker.bytes
        assert slower.why.endswith(f"{size_text(quicker.bytes - slower.bytes)} less")


def test_what_turns_took_before_is_what_they_are_expected_to_take() -> None:
    job, budget, way = Job(n=16), on(ram(16)), Strategy.IDLE_MODEL
    first = Pair(SMALL, SMALL, job, budget).idle_model()
    assert first is not None
    assert first.verifier is not None
    assert first.turn == pytest.approx((first.generator.turns + first.verifier.turns) / 2)
    known = [
        replace(SMALL, turns={way: seconds / share.moved})
        for seconds, share in ((3.0, first.generator), (5.0, first.verifier))
    ]
    again = Pair(known[0], known[1], job, budget).idle_model()
    assert again is not None
    assert again.turn == pytest.approx(4.0)
    larger = Pair(known[0], known[1], replace(job, context=4096), budget).idle_model()
    assert larger is not None
    assert larger.turn > 4.0


def test_a_verifier_that_keeps_nothing_has_nothing_to_bring_back() -> None:
    budget = on(ram(16))
    keeps, forgets = (
        Pair(SMALL, SMALL, Job(n=16, verifier_keeps=kept), budget).idle_again()
        for kept in (True, False)
    )
    assert keeps is not None
    assert forgets is not None
    assert forgets.turn < 0.6 * keeps.turn


def test_a_generator_alone_takes_all_of_the_cache() -> None:
    chosen = make_plan(SMALL, None, Job(n=8), on(ram(4))).chosen
    assert chosen is not None
    assert chosen.verifier is None
    assert chosen.generator.paths == 8


def test_a_context_longer_than_a_model_was_trained_for_is_shortened() -> None:
    short = replace(SMALL, trained_context=1024)
    assert make_plan(SMALL, short, Job(context=4096), on(ram(8))).job.context == 1024


def test_smaller_n_and_context_are_offered_only_where_not_all_paths_fit() -> None:
    job = Job(n=16, context=4096)
    tight = make_plan(LARGE, SMALL, job, on(GPU, 7 * GIB))
    strategies = [option.strategy for option in tight.options]
    assert Strategy.SMALLER_N in strategies
    assert Strategy.SMALLER_CONTEXT in strategies
    assert strategies.index(Strategy.SMALLER_N) > 0


def test_a_refusal_tells_what_is_needed_what_there_is_and_what_to_do() -> None:
    plan = make_plan(SMALL, LARGE, Job(), on(ram(2)))
    message, advice = plan.refusal
    assert plan.chosen is None
    assert "2.0 GiB may be used" in message
    assert "smaller" in advice


def test_a_refusal_by_a_budget_names_the_budgets_that_are_enough() -> None:
    job = Job(n=16)
    limited = partial(on, ram(64))
    message, advice = make_plan(SMALL, LARGE, job, limited(2 * GIB)).refusal
    least, whole = map(parse_size, re.findall(r"\d+M", advice))
    assert "2.0 GiB may be used" in message
    assert "Free" not in advice
    assert make_plan(SMALL, LARGE, job, limited(least)).chosen is not None
    held = make_plan(SMALL, LARGE, job, limited(whole)).chosen
    assert held is not None
    assert held.strategy is Strategy.COLLOCATED
    assert held.generator.paths == 16


def test_where_no_budget_would_help_a_refusal_asks_for_free_memory() -> None:
    budget = on(ram(2), GIB)
    _, advice = make_plan(SMALL, LARGE, Job(), budget).refusal
    assert advice.startswith("Free ")
    assert "--budget" not in advice


def test_models_beside_a_draft_model_never_take_turns_to_fit() -> None:
    """It works in every pass, so that what needs turns is refused, or made smaller."""
    job = Job(n=2)
    size = make_plan(SMALL, LARGE, job, on(ram(64), 0)).least + MIB
    turns = make_plan(SMALL, LARGE, job, on(ram(64), size))
    assert turns.chosen is not None
    assert turns.chosen.strategy is not Strategy.COLLOCATED
    beside = plan_beside(SMALL, LARGE, job, on(ram(64), size + GIB), GIB)
    assert beside.chosen is None
    assert beside.least > size + GIB
    assert plan_beside(SMALL, LARGE, job, on(ram(64), beside.least + MIB), GIB).chosen is not None


def test_a_margin_is_left_free() -> None:
    assert budget_for(GPU, PROCESSOR, None).bytes == GPU.free - MARGIN
    assert budget_for(GPU, PROCESSOR, None, limit=GIB).bytes == GIB


@settings(max_examples=40, deadline=None)
@given(
    pair=st.sampled_from(PAIRS),
    device=st.sampled_from([GPU, named("RTX 4070 Ti"), named("M2 16 GB"), ram(16)]),
    size=st.integers(0, 20 * GIB),
    n=st.integers(1, 64),
    context=st.integers(256, 16384),
)
def test_no_option_ever_exceeds_the_budget(
    pair: tuple[Facts, Facts], device: Device, size: int, n: int, context: int
) -> None:
    plan = make_plan(*pair, Job(n=n, context=context), on(device, size))
    for option in plan.options:
        assert option.bytes <= size
        assert option.seconds > 0


@settings(max_examples=30, deadline=None)
@given(
    pair=st.sampled_from(PAIRS),
    device=st.sampled_from([GPU, named("M2 16 GB"), ram(16), replace(GPU, link=None)]),
    n=st.integers(1, 64),
    context=st.integers(256, 8192),
)
def test_what_a_refusal_asks_for_is_enough_and_no_more(
    pair: tuple[Facts, Facts], device: Device, n: int, context: int
) -> None:
    job = Job(n=n, context=context)
    least = make_plan(*pair, job, on(device, 0)).least
    assert make_plan(*pair, job, on(device, least + MIB)).chosen is not None
    assert make_plan(*pair, job, on(device, least - MIB)).chosen is None


def test_survivors_that_do_not_fit_are_read_again_in_every_round() -> None:
    speed, load = Speed(1e9, 1.0), Load(weights=0, cell=0, parameters=1, attention=0)
    work = Work(paths=8, length=10, survivors=4, rounds=10)
    once = work.verifying(load, speed, 4)
    assert once == load.prefill(speed, 8, 10)
    assert work.verifying(load, speed, 3) == once + 10 * load.prefill(speed, 1, 5)


def test_paths_that_share_their_beginnings_are_written_together_in_a_small_cache() -> None:
    speed, load = Speed(1.0, 1e9), Load(weights=1, cell=0, parameters=0, attention=0)
    work = Work(paths=16, length=10, survivors=4, rounds=10)
    assert work.held == 2 + 1.6
    assert work.writing(load, speed, 4) == work.writing(load, speed, 16)
    assert work.writing(load, speed, 3) > work.writing(load, speed, 4)


@pytest.mark.parametrize("name", ["RTX 3070 Ti", "nvidia geforce rtx 3070 ti"])
def test_a_device_is_found_by_name(name: str) -> None:
    assert named(name).kind is Kind.GPU
