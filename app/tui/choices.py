"""What can be chosen to answer on this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.options import DEMONSTRATION
from app.tui.effort import Models
from engine.client import models as known_models
from engine.client.drafting import acceptance
from engine.client.models import Model, Preset, Role, State
from engine.client.planning import parse_size, size_text
from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class Choice:
    """A pair, or one model beside what answers now."""

    title: str
    models: Models
    """What would answer."""
    parts: tuple[Model, ...]
    """What has to be on this machine for that."""
    suits: bool = False
    """Whether it makes the most of this machine."""
    made_for: int | None = None
    """Bytes that are to be free for it, by the catalogue."""

    @property
    def missing(self) -> list[Model]:
        return [part for part in self.parts if part.state is not State.HERE]

    @property
    def writer(self) -> Model | None:
        """Its generator, which could draft for another; None for a verifier by itself."""
        return next((part for part in self.parts if part.role == "generator"), None)

    @property
    def judge(self) -> str | None:
        """The model that could rank solutions at the end; only a single generator can."""
        ids = [part.id for part in self.parts if part.role == "generator"]
        return ids[0] if len(self.parts) == len(ids) == 1 else None

    @property
    def state(self) -> str:
        """Where it is, for people."""
        missing = self.missing
        if not missing:
            return "here"
        return missing[0].state.value

    @property
    def can_be_had(self) -> bool:
        """Whether all that is missing can be downloaded as it is."""
        return all(part.state in (State.REMOTE, State.PARTLY) for part in self.missing)


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to choose from."""

    machine: str
    free: int
    """Bytes."""
    pairs: tuple[Choice, ...]
    generators: tuple[Choice, ...]
    verifiers: tuple[Choice, ...]


def look(now: Models) -> Offer:
    """Look at the catalogue and at this machine, which may take a second.

    Raises:
        EngineError: a catalogue file has a mistake.
    """
    known = known_models.known()
    found: dict[tuple[Role, str], Model] = {(model.role, model.id): model for model in known}
    device, presets = known_models.presets()
    suggested = known_models.suggestion()
    pairs = [Choice(DEMONSTRATION, Models(), _parts(found, Models()))]
    for name, preset in presets.items():
        models = _of(name, preset)
        suits = suggested is not None and suggested.name == name
        free = parse_size(preset.free)
        title = f"{name}: {models.label}"
        pairs.append(Choice(title, models, _parts(found, models), suits, free))
    machine = f"{device.name}, {size_text(device.free)} of {size_text(device.total)} free"
    others = [model for model in found.values() if model.id != DEMONSTRATION]
    generators = [Choice(m.id, _beside(now, m), (m,)) for m in others if m.role == "generator"]
    verifiers = [Choice(m.id, _beside(now, m), (m,)) for m in others if m.role == "verifier"]
    return Offer(machine, device.free, tuple(pairs), tuple(generators), tuple(verifiers))


def suited() -> Choice | None:
    """The pair that makes the most of this machine; None where too little is free for any.

    Raises:
        EngineError: a catalogue file has a mistake.
    """
    return next((pair for pair in look(Models()).pairs if pair.suits), None)


def drafted(models: Models, draft: str | None) -> Models:
    """The same models with one that drafts for the generator, or none.

    Raises:
        EngineError: there is no such model.
    """
    if draft is None or draft == models.generator:
        return replace(models, draft=None, accept="tokens", preset="")
    return replace(models, draft=draft, accept=acceptance(draft, models.generator), preset="")


def _of(name: str, preset: Preset) -> Models:
    return Models(
        preset.generator,
        preset.verifier,
        n=preset.n,
        width=preset.width,
        context=preset.context,
        cache=preset.cache.value,
        preset=name,
    )


def _beside(now: Models, model: Model) -> Models:
    """One model in the place of the one of its role. What was said of a format was of another."""
    if model.role == "generator":
        verifier = None if now.verifier == DEMONSTRATION else now.verifier
        beside = replace(now, generator=model.id, verifier=verifier)
        try:
            return drafted(beside, now.draft)
        except EngineError:  # what drafted is known no more
            return drafted(beside, None)
    return replace(now, verifier=model.id, prm_format=None, preset="")


def _parts(found: dict[tuple[Role, str], Model], models: Models) -> tuple[Model, ...]:
    names: tuple[tuple[Role, str | None], ...] = (
        ("generator", models.generator),
        ("verifier", models.verifier),
    )
    return tuple(found[role, name] for role, name in names if name is not None)
