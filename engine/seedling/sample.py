"""Draw solutions from a generator in torch, many stories at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.seedling.corpus import SEPARATOR, prompt
from engine.seedling.model import Cache, Model
from engine.seedling.tokenizer import TURN_END, tokenizer

LONGEST = 96
"""Tokens a solution may have; what is longer is cut."""


@torch.no_grad()
def sample(
    model: Model, texts: list[str], each: int, temperature: float, seed: int, batch: int = 32
) -> list[list[list[str]]]:
    """`each` solutions of every text, as steps; temperature 0 takes the likeliest.

    `batch` texts are worked on together.
    """
    noise = torch.Generator().manual_seed(seed)
    # Alike lengths together: short prompts are padded on the left to the longest.
    prompts = [tokenizer().encode(prompt(text)) for text in texts]
    order = sorted(range(len(texts)), key=lambda index: len(prompts[index]))
    solutions: list[list[list[str]]] = [[] for _ in texts]
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        written = _write(model, [prompts[index] for index in chosen], each, temperature, noise)
        for place, ids in enumerate(written):
            solutions[chosen[place // each]].append(split_steps(tokenizer().decode(ids)))
    return solutions


def split_steps(solution: str) -> list[str]:
    """The steps of a solution, without the blank lines between them."""
    return [step for part in solution.split(SEPARATOR) if (step := part.strip())]


def _write(
    model: Model, prompts: list[list[int]], each: int, temperature: float, noise: torch.Generator
) -> list[list[int]]:
    width = max(map(len, prompts))
    # Rotary positions are relative: padding in front changes nothing but the mask.
    tokens = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    shown = torch.tensor([[False] * (width - len(p)) + [True] * len(p) for p in prompts])
    square = torch.ones(width, width, dtype=torch.bool).tril()
    # A padding token sees itself, for a row of the mask must not be empty.
    mask = (square & shown[:, None, :]) | torch.eye(width, dtype=torch.bool)
    caches = [Cache(width + LONGEST) for _ in model.blk]
    positions = torch.arange(width).expand(len(prompts), width)
    hidden = model(tokens, positions, mask[:, None], caches)[:, -1]

    # The prompt was read once; from here on every copy goes its own way.
    written: list[list[int]] = [[] for _ in range(len(prompts) * each)]
    rows = torch.arange(len(written))
    going = torch.ones(len(written), dtype=torch.bool)
    keep: Tensor | None = rows // each
    end = tokenizer().ids[TURN_END]
    for place in range(width, width + LONGEST):
        if keep is not None:
            hidden, shown = hidden[keep], shown[keep]
            for cache in caches:
                cache.keep(keep)
        logits = model.logits(hidden)
        if temperature > 0:
            chances = torch.softmax(logits / temperature, -1)
            drawn = torch.multinomial(chances, 1, generator=noise)[:, 0]
        else:
            drawn = logits.argmax(-1)
        going &= drawn != end
        for index in going.nonzero()[:, 0].tolist():
            written[rows[index]].append(int(drawn[index]))
        if not going.any():
            break
        shown = torch.cat([shown, torch.ones(len(rows), 1, dtype=torch.bool)], 1)
        where = torch.full((len(rows), 1), place)
        hidden = model(drawn[:, None], where, shown[:, None, None], caches)[:, -1]
        # Once half have ended, the others go on alone.
        keep = going.nonzero()[:, 0] if going.float().mean() < 0.5 else None
        if keep is not None:
            rows, going = rows[keep], going[keep]
    return written
