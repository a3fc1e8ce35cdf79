"""Spans cut into batches."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.base import Span


def pieces(spans: Sequence[Span], tokens: int, outputs: int) -> list[list[Span]]:
    """Cut spans, in order, into batches of at most `tokens` tokens and `outputs` outputs."""
    batches: list[list[Span]] = [[]]
    free, free_outputs = tokens, outputs
    for span in spans:
        wanted = sorted(i if i >= 0 else len(span.tokens) + i for i in span.wanted)
        start = 0
        while start < len(span.tokens):
            if free == 0 or (free_outputs == 0 and wanted):
                batches.append([])
                free, free_outputs = tokens, outputs
            end = min(len(span.tokens), start + free)
            inside = [i for i in wanted if i < end]
            if len(inside) > free_outputs:
                end = inside[free_outputs]
                inside = inside[:free_outputs]
            wanted = wanted[len(inside) :]
            piece = Span(span.paths, span.tokens[start:end], [i - start for i in inside])
            batches[-1].append(piece)
            free -= end - start
            free_outputs -= len(inside)
            start = end
    return batches
