"""The models a worker holds: opened as the plan of each run says, kept for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil

from engine.errors import EngineError
from engine.memory.devices import Device, Kind
from engine.memory.estimate import CacheType, Facts, Prediction, Setting, predict
from engine.memory.learnt import header_of, name_of
from engine.memory.ledger import Ledger, anonymous, ledger_file
from engine.memory.options import Share, Strategy
from engine.memory.record import Key, Measurement, Records, TurnMeasurement, records_file
from engine.memory.strategies import (
    OWN_SEQUENCES,
    draft_setting,
    generator_setting,
    verifier_setting,
)
from engine.models.base import TokenModel
from engine.models.chat import ChatTemplate
from engine.models.folder import load_folder, open_folder
from engine.models.gguf import Header
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal
from engine.protocol.events import ModelMemory, Trouble
from engine.service.measuring import taken
from engine.service.planning import Ask, Planned, Planner, Warn
from engine.service.turns import Turns

if TYPE_CHECKING:
    from engine.models.hf.model import HfModel
    from engine.models.hf.weights import HfWeights

Role = Literal["generator", "verifier", "draft"]
Loading = Callable[[Path], Callable[[Header, float], None]]
"""Given a file, gives what is told of its header and of the part of its weights that is read."""

_TURNS = {
    Strategy.IDLE_CACHE: (False, True),
    Strategy.IDLE_MODEL: (True, True),
    Strategy.IDLE_AGAIN: (True, False),
}
"""Of the strategies in which models take turns: whether weights leave, and the cache is saved."""


@dataclass(frozen=True, slots=True)
class _Place:
    """How a model is opened: with other weights or another setting it is another."""

    path: Path
    layers: int | None
    native: str | None
    setting: Setting
    prediction: Prediction
    device: Device
    all_layers: bool = False
    """Whether it gives the states of all its layers."""

    @property
    def weights(self) -> tuple[Path, int | None, str | None]:
        return self.path, self.layers, self.native

    @property
    def opening(self) -> tuple[Setting, bool]:
        return self.setting, self.all_layers

    @property
    def predicted(self) -> int:
        """Bytes on the device."""
        gpu = self.device.kind is Kind.GPU
        return self.prediction.on_device if gpu else self.prediction.total


@dataclass(slots=True)
class _Held:
    place: _Place
    weights: LlamaWeights | HfWeights
    model: LlamaModel | HfModel | None = None

    def close(self) -> None:
        if self.model is not None:
            self.model.close()
        self.weights.close()


@dataclass(frozen=True, slots=True)
class Opened:
    """The models of a run, with empty caches."""

    planned: Planned
    generator: TokenModel
    template: ChatTemplate
    """The generator's."""
    verifier: TokenModel | None
    verifier_template: ChatTemplate | None
    turns: Turns | None
    """Set where the models take turns: each change from one to the other takes a while."""
    memory: Callable[[], dict[Role, ModelMemory]]
    """What each takes at the moment."""
    draft: TokenModel | None = None


class ModelPool:
    """One model a role; another file replaces the one that played it."""

    def __init__(self, planner: Planner | None = None) -> None:
        self._planner = planner or Planner(Records(records_file()), Ledger(ledger_file()))
        self._held: dict[Role, _Held] = {}

    def open(self, ask: Ask, stop: StopSignal, loading: Loading, warn: Warn) -> Opened:
        """Plan for what is asked, and have the models as the plan says.

        Args:
            warn: told what the user should know.

        Raises:
            Interrupted: `stop` was set while loading.
            EngineError: a file cannot be used, or there is no memory for it.
        """
        paths: dict[Role, Path | None] = {
            "generator": ask.generator,
            "verifier": ask.verifier,
            "draft": ask.draft,
        }
        for role, held in list(self._held.items()):
            if held.place.path != paths[role]:
                self._drop(role)  # before what is free is looked at
        planned = self._planner.plan(ask, self._bytes_on, warn)
        try:
            return self._as_planned(planned, stop, loading, _places(planned, ask))
        except EngineError as error:
            if error.trouble is Trouble.MEMORY:
                self.close()
            raise

    def watch(self, stop: StopSignal) -> None:
        """Have all models give up computing when `stop` is set, from now on."""
        for held in self._held.values():
            if held.model is not None:
                held.model.watch(stop)

    def remember(self, opened: Opened) -> None:
        """Keep how long changes of turn took: the next plan for these models uses it."""
        if opened.turns is None:
            return
        option = opened.planned.option
        shares: dict[Role, Share | None] = {
            "generator": option.generator,
            "verifier": option.verifier,
        }
        for role, share in shares.items():
            held = self._held.get(role)
            seconds = held and held.model and opened.turns.there_and_back(held.model)
            if held and share and seconds:
                self._planner.records.add(
                    TurnMeasurement(
                        _key(held.place),
                        role == "verifier",
                        option.strategy.value,
                        share.moved,
                        share.turns,
                        seconds,
                    )
                )

    def close(self) -> None:
        """Give all memory back."""
        for role in list(self._held):
            self._drop(role)
        self._planner.ledger.withdraw()

    def _as_planned(
        self, planned: Planned, stop: StopSignal, loading: Loading, places: dict[Role, _Place]
    ) -> Opened:
        for role in list(self._held):  # what leaves makes room for what comes
            self._keep_what_fits(role, places[role])
        turns = None
        if planned.option.strategy in _TURNS:
            weights, save = _TURNS[planned.option.strategy]
            turns = Turns(weights=weights, save=save)
            for held in self._held.values():
                _send_away(held, weights)
        models: dict[Role, TokenModel] = {}
        # The generator works first: where models take turns, it comes last.
        for role in reversed(places) if turns else places:
            if turns is not None:
                turns.clear_for(None)
            model = self._have(role, places[role], stop, loading(places[role].path))
            models[role] = model if turns is None else turns.add(model)
        self._planner.ledger.promise(
            planned.device.name, planned.option.bytes + planned.beside, placed=True
        )
        verifier = self._held.get("verifier")
        return Opened(
            planned,
            models["generator"],
            self._held["generator"].weights.template,
            models.get("verifier"),
            verifier and verifier.weights.template,
            turns,
            self._memory,
            models.get("draft"),
        )

    def _have(
        self, role: Role, place: _Place, stop: StopSignal, loading: Callable[[Header, float], None]
    ) -> LlamaModel | HfModel:
        """The role's model, empty and awake."""

        def progress(done: float) -> bool:
            loading(header_of(place.path), done)
            return not stop.is_set

        before = taken(place.device)
        held = self._held.get(role)
        fresh = held is None
        if held is None:
            held = self._held[role] = _load(place, progress)
        else:
            held.weights.load(progress)
            progress(1.0)
        if held.model is None:
            held.model = _open(held.weights, place, stop)
            held.place = place
        held.model.watch(stop)
        held.model.reset()
        held.model.wake()
        if fresh:
            self._measure(held.model, place, before)
        return held.model

    def _measure(self, model: LlamaModel | HfModel, place: _Place, before: int) -> None:
        """Keep what the model takes, unless it is known."""
        key = _key(place)
        records = self._planner.records
        if records.knows(key.model, key.cache, key.backend):
            return
        model.touch()
        records.add(
            Measurement(
                key,
                place.predicted - place.prediction.surplus,
                taken(place.device) - before,
            )
        )

    def _keep_what_fits(self, role: Role, place: _Place) -> None:
        held = self._held[role]
        if held.place.weights != place.weights:
            self._drop(role)
        elif held.place.opening != place.opening and held.model is not None:
            held.model.close()
            held.model = None

    def _memory(self) -> dict[Role, ModelMemory]:
        return {role: _memory_of(held) for role, held in self._held.items()}

    def _bytes_on(self, device: Device) -> int:
        """What this process has of a device and may use for something else."""
        if device.kind is not Kind.GPU:
            return anonymous(psutil.Process())
        awake = (held for held in self._held.values() if held.model and held.model.awake)
        return sum(held.place.predicted for held in awake)

    def _drop(self, role: Role) -> None:
        held = self._held.pop(role, None)
        if held is not None:
            held.close()


def _places(planned: Planned, ask: Ask) -> dict[Role, _Place]:
    """How each model is to be opened, the generator first."""
    option, device = planned.option, planned.device
    kind, cache = device.kind, ask.job.cache
    n = option.job.n

    def place(path: Path, facts: Facts, share: Share | None, setting: Setting) -> _Place:
        on_gpu = None if share is None or share.layers == facts.layers else share.layers
        layers = 0 if kind is Kind.RAM else on_gpu
        prediction = predict(facts, setting, gpu=kind is not Kind.RAM)
        return _Place(path, layers, device.native, setting, prediction, device)

    setting = generator_setting(
        option.generator.cells,
        n,
        on=kind,
        cache=cache,
        outputs=ask.job.outputs,
        precise=ask.job.precise,
    )
    places: dict[Role, _Place] = {
        "generator": replace(
            place(ask.generator, planned.generator, option.generator, setting),
            all_layers=ask.all_layers,
        )
    }
    if ask.verifier and planned.verifier and option.verifier:
        markers = ask.job.markers
        setting = verifier_setting(option.verifier.cells, n, on=kind, cache=cache, markers=markers)
        places["verifier"] = place(ask.verifier, planned.verifier, option.verifier, setting)
    if ask.draft and planned.draft:
        setting = draft_setting(option.job, planned.draft, on=kind)
        places["draft"] = replace(
            place(ask.draft, planned.draft, None, setting), all_layers=ask.all_layers
        )
    return places


def _key(place: _Place) -> Key:
    return Key.of(name_of(place.path), place.setting, place.device.backend)


def _load(place: _Place, progress: Callable[[float], bool]) -> _Held:
    if place.path.is_dir():
        return _load_folder(place, progress)
    weights = LlamaWeights(place.path, header_of(place.path), progress, place.layers, place.native)
    return _Held(place, weights)


def _load_folder(place: _Place, progress: Callable[[float], bool]) -> _Held:
    if place.setting.cache is not CacheType.F16:
        raise EngineError(
            Trouble.USAGE,
            f"{place.path.name} is a checkpoint, whose cache cannot be stored as "
            f"{place.setting.cache.value}.",
            "Leave out --cache, or convert the model to GGUF with: sapwood models convert",
        )
    device = "cpu" if place.device.kind is Kind.RAM else None
    checkpoint = load_folder(place.path, progress, device)
    return _Held(place, checkpoint)


def _open(
    weights: LlamaWeights | HfWeights, place: _Place, stop: StopSignal
) -> LlamaModel | HfModel:
    setting = place.setting
    paths = setting.sequences - OWN_SEQUENCES
    if not isinstance(weights, LlamaWeights):
        return open_folder(
            weights,
            capacity=setting.cells,
            paths=paths,
            stop=stop,
            all_layers=place.all_layers,
        )
    return LlamaModel(
        weights,
        capacity=setting.cells,
        paths=paths,
        outputs=setting.outputs,
        stop=stop,
        cache=setting.cache.value,
        all_layers=place.all_layers,
        precise=setting.precise,
    )


def _send_away(held: _Held, weights: bool) -> None:
    """Make room for another, with nothing to come back to."""
    if held.model is not None:
        held.model.reset()
        held.model.sleep(weights=weights, save=False)
    elif weights:
        held.weights.unload()


def _memory_of(held: _Held) -> ModelMemory:
    """Bytes by the sizes of file and cells."""
    model, taken, device = held.model, held.place.prediction, held.place.device
    assert model is not None
    weights = taken.weights
    cell = taken.cache // held.place.setting.cells
    if model.awake:
        return ModelMemory(
            weights=weights,
            cache_used=model.used * cell,
            cache_free=(model.capacity - model.used) * cell,
            buffers=taken.compute + taken.outputs + taken.vocabulary + taken.book_keeping,
        )
    here = weights if held.weights.loaded else 0
    kept = 0 if device.kind is Kind.GPU else model.saved_bytes  # RAM is the device itself
    return ModelMemory(
        weights=here,
        cache_used=kept,
        buffers=taken.vocabulary,
        offloaded=weights - here + model.saved_bytes - kept,
    )
