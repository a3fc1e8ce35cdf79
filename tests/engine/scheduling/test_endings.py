"""How nodes and searches end, also when there is no room or somebody stops them."""

from __future__ import annotations

from collections import Counter

import pytest

from engine import search
from engine.models.base import Interrupted
from engine.models.llama import LlamaWeights
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.protocol import events
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import Limits
from tests.engine.real_models import opened
from tests.engine.scheduling.searching import Searched, searched


def endings(run: Searched) -> Counter[str]:
    return Counter(ending for _, ending in run.tree.values())


def test_a_step_cut_by_its_cap_goes_on_and_a_full_context_does_not(
    seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    run = searched(seedling_generator, seedling_verifier, step=4, context=56, max_steps=20)
    assert endings(run)["length"] > 0
    assert endings(run)["context"] > 0
    parents = {lineage[:-1] for lineage in run.tree}
    for lineage, (_, ending) in run.tree.items():
        if ending in ("context", "end"):
            assert lineage not in parents
    assert any(run.tree[lineage][1] == "length" for lineage in parents if lineage)


def test_steps_cut_by_their_cap_spell_the_same_solution(
    seedling_generator: LlamaWeights,
) -> None:
    whole = searched(seedling_generator, None, "greedy", n=1, temperature=0.0)
    cut = searched(seedling_generator, None, "greedy", n=1, temperature=0.0, step=3, max_steps=60)
    assert "length" in endings(cut)
    assert [c.text for c in cut.completed] == [c.text for c in whole.completed]


def test_characters_cut_by_a_cap_are_completed_in_the_next_step(smollm2: LlamaWeights) -> None:
    problem = "Repeat exactly: 日本語 日本語 日本語"
    whole = searched(smollm2, None, "greedy", n=1, temperature=0.0, problem=problem, step=16,
                     context=512, max_steps=1)  # fmt: skip
    cut = searched(smollm2, None, "greedy", n=1, temperature=0.0, problem=problem, step=1,
                   context=512, max_steps=16)  # fmt: skip
    joined = "".join(text for _, (text, _) in sorted(cut.tree.items()))
    assert joined.startswith(whole.tree[0,][0].rstrip("\ufffd"))
    assert "" in {text for text, _ in cut.tree.values()}  # some characters were cut
    assert "\ufffd" not in joined


@pytest.mark.parametrize("n", [1, 4])
def test_paths_that_outgrow_the_cache_end_there(n: int, seedling_generator: LlamaWeights) -> None:
    problem = " ".join(["Tom has 12 apples. He buys 7 more apples."] * 14)
    run = searched(
        seedling_generator,
        None,
        "majority",
        n=n,
        capacity=256,
        context=5000,
        step=5000,
        max_steps=1,
        temperature=8.0,
        problem=problem,
    )
    assert len(run.tree) == n
    assert set(endings(run)) <= {"context", "end"}
    assert endings(run)["context"] > 0


def test_a_stop_takes_effect_within_one_pass(seedling_generator: LlamaWeights) -> None:
    stop = StopSignal()
    with opened(seedling_generator, 1024, 20, stop=stop) as model:
        scheduler = Scheduler(
            model,
            None,
            search.build("majority", n=8),
            Sampler(),
            prompt=model.vocabulary.tokenize("Tom has 12 apples."),
            seed=1,
            limits=Limits(64, 512),
            emit=lambda event: None,
            past=Past(),
        )
        passes = scheduler.run()
        for _ in range(5):
            next(passes)
        generated = scheduler.counts.generated
        stop.set()
        with pytest.raises(Interrupted):
            next(passes)
        assert scheduler.counts.generated == generated
        assert all(candidate.text for candidate in scheduler.frontier())


def test_text_arrives_in_pieces_that_make_up_the_finished_steps(
    seedling_generator: LlamaWeights,
) -> None:
    run = searched(seedling_generator, None, "majority", n=4)
    written: dict[tuple[int, ...], str] = {}
    for event in run.events:
        if isinstance(event, events.NodeOpened):
            assert event.lineage not in written
            written[event.lineage] = ""
        elif isinstance(event, events.TextAppended):
            written[event.lineage] += event.text
    assert written == {lineage: text for lineage, (text, _) in run.tree.items()}
