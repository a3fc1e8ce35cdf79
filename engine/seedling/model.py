"""A small Llama in plain torch, laid out as llama.cpp wants it.

Rotary positions turn neighbouring pairs, as in the GGUF architecture `llama`,
so that no weight has to be permuted on export.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.seedling.tokenizer import tokenizer

PERIODS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 20, 25, 50, 100, 200, 400)


@dataclass(frozen=True)
class Shape:
    """The size of a model."""

    width: int = 192
    layers: int = 4
    heads: int = 6
    inner: int = 512
    context: int = 1024
    rope_base: float = 10_000.0
    epsilon: float = 1e-5

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


class Cache:
    """Keys and values of one block for the tokens read so far, at most `room`."""

    def __init__(self, room: int) -> None:
        self.room, self.length = room, 0
        self.pair: list[Tensor] = []

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store what is new and give back all that is known."""
        if not self.pair:
            batch, heads, _, width = k.shape
            self.pair = [k.new_zeros(batch, heads, self.room, width) for _ in range(2)]
        start, self.length = self.length, self.length + k.shape[2]
        for stored, new in zip(self.pair, (k, v), strict=True):
            stored[:, :, start : self.length] = new
        known_k, known_v = (stored[:, :, : self.length] for stored in self.pair)
        return known_k, known_v

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows of the batch, repeated or left out at will."""
        self.pair = [stored[rows] for stored in self.pair]


class Block(nn.Module):
    """Attention and a gated feed-forward, each on a normalised residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attn_norm = nn.RMSNorm(shape.width, shape.epsilon)
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_v = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_norm = nn.RMSNorm(shape.width, shape.epsilon)
        self.ffn_gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.inner, bias=False)
        self.ffn_down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(
        self, x: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor, cache: Cache | None
    ) -> Tensor:
        batch, length, width = x.shape
        normed = self.attn_norm(x)
        q, k, v = (
            part(normed).view(batch, length, self.heads, -1).transpose(1, 2)
            for part in (self.attn_q, self.attn_k, self.attn_v)
        )
        q, k = _rotate(q, *turn), _rotate(k, *turn)
        if cache is not None:
            k, v = cache.extend(k, v)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.attn_output(mixed.transpose(1, 2).reshape(batch, length, width))
        normed = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))


class Model(nn.Module):
    """Hidden states from tokens; `logits` is the tied head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(len(tokenizer()), shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = nn.RMSNorm(shape.width, shape.epsilon)
        half = shape.width // shape.heads // 2
        inverse = shape.rope_base ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(shape.context), inverse)
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            if name.endswith(("attn_output.weight", "ffn_down.weight")):
                nn.init.zeros_(parameter)
        # Numbers start as points on circles of several periods, so that adding
        # is turning: without this, each number's place is learnt from scratch.
        numbers = torch.arange(len(tokenizer().numbers)).float()
        waves = [f(2 * math.pi * numbers / p) for p in PERIODS for f in (torch.cos, torch.sin)]
        with torch.no_grad():
            rows = self.token_embd.weight[tokenizer().numbers]
            rows[:, : len(waves)] = 0.06 * torch.stack(waves, 1)
            self.token_embd.weight[tokenizer().numbers] = rows

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor,
        mask: Tensor,
        caches: list[Cache] | None = None,
    ) -> Tensor:
        """`mask` is True where a query (row) sees a key (column)."""
        turn = (self.cosine[positions].unsqueeze(1), self.sine[positions].unsqueeze(1))
        x = self.token_embd(tokens)
        for index, block in enumerate(self.blk):
            x = block(x, turn, mask, caches[index] if caches is not None else None)
        return self.output_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.token_embd.weight)


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn each pair of neighbouring values by its position's angle."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
