"""What can answer: shown, downloaded and chosen inside the app."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import OptionList

from app.narration import clock
from app.run_view import Hand
from app.tui.choices import Offer, drafted, look
from app.tui.costs import Cost, planned
from app.tui.effort import Effort, Models
from app.tui.screens.models import ModelsScreen
from app.tui.settings import Settings, load_settings
from app.tui.speeds import Speeds
from app.tui.turn import Turn
from app.tui.widgets.effort_bar import EffortBar
from engine import catalogue
from engine.client import LocalEngine
from engine.client import models as known_models
from engine.client.planning import DEFAULT_CONTEXT
from engine.hub import store
from engine.protocol import Drafting
from tests.app.tui.driving import Driver, ToldEngine, running
from tests.engine.hub.fixtures import FILE, OWNER, hub, in_catalogue
from tests.engine.hub.giant import write_giant
from tests.engine.hub.loopback import Answer, Hub

__all__ = ["hub"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models screen has but the model that a test is about, since it plans all it has."""

    def look_at_few(now: Models) -> Offer:
        offer = look(now)
        mine = tuple(choice for choice in offer.verifiers if choice.title == "mine")
        return replace(offer, pairs=offer.pairs[:1], generators=(), verifiers=mine)

    monkeypatch.setattr("app.tui.screens.models.look", look_at_few)


async def open_models(driver: Driver, title: str) -> OptionList:
    """The models screen with the cursor on one of them."""
    await driver.press("f4")
    await driver.until(lambda: isinstance(driver.app.screen, ModelsScreen))
    choices = driver.app.screen.query_one("#choices", OptionList)

    def place() -> int | None:
        rows = enumerate(choices.options)
        return next((place for place, row in rows if f" {title}\n" in f"{row.prompt}\n"), None)

    await driver.until(lambda: place() is not None)
    choices.highlighted = place()
    return choices


def under_the_cursor(choices: OptionList) -> str:
    option = choices.highlighted_option
    return str(option.prompt) if option is not None else ""


@pytest.mark.asyncio
async def test_a_model_is_downloaded_and_answers_without_a_restart(hub: Hub, few: None) -> None:
    in_catalogue("mine", "verifiers")
    async with running(LocalEngine()) as driver:
        choices = await open_models(driver, "mine")
        await driver.until(lambda: "to download · fits: " in under_the_cursor(choices))
        await driver.press("enter")
        await driver.until_shown("is here")
        await driver.until(lambda: "here · " in under_the_cursor(choices))
        assert store.find(OWNER, FILE) is not None
        await driver.press("enter")
        await driver.until_shown("seedling + mine")
        assert load_settings().models == Models(verifier="mine")
        turn = await driver.solve("Tom has 3 apples. He finds 5 more. How many apples are there?")
        assert turn.request.verifier == "mine"
        assert turn.view.answered is not None


@pytest.mark.asyncio
async def test_a_download_goes_on_behind_and_can_be_stopped(hub: Hub, few: None) -> None:
    in_catalogue("mine", "verifiers")
    async with running() as driver:
        choices = await open_models(driver, "mine")
        await driver.until(lambda: "fits: " in under_the_cursor(choices))
        hub.next(Answer(), Answer(stall_after=1_000_000))  # the header is looked at first
        await driver.press("enter")
        await driver.until_shown("%")
        await driver.press("escape")
        await driver.until_shown("downloading mine")
        choices = await open_models(driver, "mine")
        await driver.press("x")
        await driver.until_shown("stopped; what came is kept")
        await driver.until(lambda: "partly here" in under_the_cursor(choices))


@pytest.mark.asyncio
async def test_what_cannot_be_downloaded_is_said_to_be_so_and_why() -> None:
    async with running() as driver:
        choices = await open_models(driver, "skywork-prm-1.5b")
        await driver.until(lambda: "to convert" in under_the_cursor(choices))
        await driver.press("enter")
        await driver.until_shown("It cannot be downloaded as it is.")


@pytest.mark.asyncio
async def test_v_takes_the_verifier_away() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await open_models(driver, "seedling")
        await driver.press("v")
        await driver.solve()
        assert engine.requests[0].verifier is None
        assert engine.requests[0].search.policy == "majority"


@pytest.mark.asyncio
async def test_j_has_a_generator_rank_at_the_end_and_again_no_more() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await open_models(driver, "smollm2-135m-instruct")
        await driver.press("j")
        await driver.until_shown("ranked by smollm2-135m-instruct")
        await driver.solve()
        choices = await open_models(driver, "smollm2-135m-instruct")
        await driver.until(lambda: "ranks at the end" in under_the_cursor(choices))
        await driver.press("j")
        await driver.until(lambda: driver.app.chat.models == Models())
        await driver.solve()
    ranked = [request.rerank for request in engine.requests]
    assert ranked == ["smollm2-135m-instruct", None]


def test_a_preset_is_asked_for_as_the_catalogue_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    presets = catalogue.load().presets
    device, _ = known_models.presets()
    monkeypatch.setattr(known_models, "presets", lambda: (device, presets))
    _, *pairs = look(Models()).pairs
    for preset, pair in zip(presets.values(), pairs, strict=True):
        request = pair.models.request("?", Effort.THINK)
        assert (request.generator, request.verifier) == (preset.generator, preset.verifier)
        assert (request.search.n, request.search.width) == (preset.n, preset.width)
        assert (request.context, request.cache) == (preset.context, preset.cache.value)


@pytest.mark.asyncio
async def test_the_first_solved_problem_is_followed_by_what_this_machine_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.tui import choices

    pairs = look(Models()).pairs
    monkeypatch.setattr(choices, "suited", lambda: pairs[1])
    async with running(settings=Settings()) as driver:
        await driver.until_shown("Enter solves it.")
        await driver.press("enter")
        await driver.until_shown("This machine has room for")


def test_every_pair_is_of_models_in_the_catalogue_and_for_a_machine_like_this() -> None:
    offer = look(Models())
    assert offer.pairs[0].models == Models()
    for pair in offer.pairs:
        assert [part.id for part in pair.parts] == list(
            filter(None, (pair.models.generator, pair.models.verifier))
        )
    assert sum(pair.suits for pair in offer.pairs) <= 1


def test_the_cost_of_the_seedling_is_planned_and_of_a_missing_model_is_not_known() -> None:
    cost = planned(Models(), Effort.THINK)
    assert cost.bytes
    assert cost.least
    assert f"full length {clock(cost.least)} at best" in cost.words(None)
    assert "≈ 2.5 s" in cost.words(2.5)
    assert planned(Models(generator="nobody"), Effort.QUICK).unknown


def test_what_a_question_took_is_known_of_its_own_kind_alone() -> None:
    kept: list[dict[str, float]] = []
    speeds = Speeds({}, kept.append)
    models = Models()
    speeds.learn(models, Turn(models.request("?", Effort.THINK, seed=3), Effort.THINK), 2.0)
    assert speeds.of(models) == {Effort.THINK: 2.0}
    assert speeds.of(models.alone) == {}
    assert Speeds(kept[-1], kept.append).of(models) == {Effort.THINK: 2.0}


@pytest.mark.asyncio
async def test_an_untried_effort_is_estimated_from_a_tried_one_by_the_plan() -> None:
    async with running() as driver:
        bar = driver.app.chat.query_one(EffortBar)
        costs = {Effort.THINK: Cost(1 << 30, 10.0), Effort.DEEP: Cost(2 << 30, 30.0)}
        bar.tell(Models(), costs, {Effort.THINK: 2.0})
        await driver.until_shown("8 paths · ≈ 2.0 s · ≈ 1.0 GiB")
        bar.effort = Effort.DEEP
        await driver.until_shown("32 paths · ≈ 6.0 s · ≈ 2.0 GiB")
        bar.tell(Models(), {Effort.DEEP: Cost(trouble="does not fit: needs 9 GiB")}, {})
        await driver.until_shown("does not fit")


@pytest.mark.asyncio
async def test_d_has_a_model_draft_by_meaning_where_it_can_and_again_no_more() -> None:
    engine = ToldEngine()
    settings = Settings(welcomed=True, models=Models(generator="seedling-target", verifier=None))
    async with running(engine, settings=settings) as driver:
        await open_models(driver, "seedling")
        await driver.press("d")
        await driver.until_shown("seedling-target, drafted by seedling (by meaning)")
        await driver.solve()
        choices = await open_models(driver, "seedling")
        await driver.until(lambda: "drafts" in under_the_cursor(choices))
        await driver.press("d")
        await driver.until(lambda: driver.app.chat.models == settings.models)
        await open_models(driver, "smollm2-135m-instruct")
        await driver.press("d")
        await driver.until_shown("other tokens than the generator")
        await driver.press("escape")
        await open_models(driver, "seedling-target")
        await driver.press("d")
        await driver.until_shown("It is the generator itself")
    assert [request.drafting for request in engine.requests] == [
        Drafting(draft="seedling", accept="semantic")
    ]


@pytest.mark.asyncio
async def test_the_shipped_pair_drafts_by_meaning_in_the_app() -> None:
    models = drafted(Models(generator="seedling-target", verifier=None, n=2), "seedling")
    async with running(LocalEngine(), settings=Settings(welcomed=True, models=models)) as driver:
        turn = await driver.solve("Tom has 3 apples. He finds 5 more. How many apples are there?")
        assert turn.view.failed is None
        hands = {node.hand for node in turn.view.nodes.values()}
        assert hands & {Hand.ACCEPTED, Hand.REWRITTEN}
        await driver.until_shown("drafted by seedling (by meaning)")
        assert "--accept" not in driver.screen()


def test_another_generator_keeps_the_draft_model_if_it_has_the_same_tokens() -> None:
    now = drafted(Models(generator="seedling-target", verifier=None), "seedling")
    generators = {choice.title: choice.models for choice in look(now).generators}
    assert generators["smollm2-135m-instruct"].draft is None  # it has other tokens
    others = [models for title, models in generators.items() if title != "smollm2-135m-instruct"]
    assert {models.draft for models in others} == {"seedling"}
    missing = replace(now, draft="nobody")
    assert {choice.models.draft for choice in look(missing).generators} == {None}


def test_the_cost_has_the_ranking_at_the_end_and_the_draft_model_in_it() -> None:
    plain = planned(Models(), Effort.THINK)
    ranked = planned(Models(rerank="smollm2-135m-instruct"), Effort.THINK)
    assert plain.least
    assert plain.bytes
    assert ranked.least
    assert ranked.bytes
    assert ranked.least > plain.least
    assert ranked.bytes > plain.bytes  # it takes the place of smaller models
    assert planned(Models(rerank="smollm2-135m-instruct"), Effort.QUICK).bytes == (
        planned(Models(), Effort.QUICK).bytes
    )
    alone = planned(Models(generator="seedling-target", verifier=None), Effort.THINK)
    drafts = planned(drafted(Models("seedling-target", None), "seedling"), Effort.THINK)
    assert drafts.bytes
    assert alone.bytes
    assert drafts.bytes > alone.bytes


def test_a_cost_is_planned_with_the_engines_own_context() -> None:
    models = Models("smollm2-135m-instruct", None)
    plain = planned(models, Effort.THINK)
    assert planned(replace(models, context=DEFAULT_CONTEXT), Effort.THINK) == plain
    assert planned(replace(models, context=DEFAULT_CONTEXT // 2), Effort.THINK) != plain


@pytest.mark.asyncio
async def test_a_refused_download_is_done_anyway_only_when_the_user_is_sure(
    hub: Hub, few: None, tmp_path: Path
) -> None:
    in_catalogue("mine", "verifiers")
    write_giant(tmp_path / "giant.gguf")
    hub.add(OWNER, FILE, tmp_path / "giant.gguf", checksum="0" * 64)
    async with running() as driver:
        choices = await open_models(driver, "mine")
        await driver.until(lambda: "does not fit" in under_the_cursor(choices))
        await driver.press("A")  # nothing was refused yet
        assert isinstance(driver.app.screen, ModelsScreen)
        await driver.press("enter")
        await driver.until_shown("was not downloaded")
        assert "--force" not in driver.screen()
        await driver.until(lambda: "A downloads it anyway" in under_the_cursor(choices))
        await driver.press("A")
        await driver.until_shown("Download it anyway?")
        await driver.press("y")
        await driver.until_shown("not enough room")  # the disk has none, so that it was tried
