"""Beam search as one would write it with llama-cpp-python's high-level `Llama` object.

One path after another, each from the longest beginning it shares with the one before (what
`Llama.generate` reuses by itself); token ids are kept, so nothing is tokenized again. The verifier
reads the whole path again for each new step. The policy's decisions are the engine's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from llama_cpp import Llama

from engine import search
from engine.models.chat import INSTRUCTION, ChatTemplate
from engine.models.threads import default_threads
from engine.protocol import SolveRequest
from engine.search.policy import Branch, Candidate, Ending, Group, Lineage


@dataclass(frozen=True)
class _Written:
    """A finished node with everything before it."""

    tokens: list[int]
    text: str
    scores: tuple[float, ...]
    ending: Ending


class HighLevel:
    """Solves with two `Llama` objects that are kept loaded."""

    def __init__(self, generator: Path, verifier: Path, *, context: int) -> None:
        self._generator = _open(generator, context)
        self._verifier = _open(verifier, context, logits_all=True)
        template = self._generator.metadata["tokenizer.chat_template"]
        self._template = ChatTemplate(template)
        (self._good,) = self._judge_tokens("<|good|>")
        (self._bad,) = self._judge_tokens("<|bad|>")
        self.generated = 0
        """Tokens written in all."""

    def solve(self, request: SolveRequest) -> list[Candidate]:
        """The completions of a run; the verifier must be the seedling's."""
        settings = request.search
        policy = search.build(
            settings.policy, n=settings.n, width=settings.width, max_steps=settings.max_steps
        )
        root = _Written(self._prompt(request.problem), "", (), Ending.STEP)
        self._generator.set_seed(request.seed)
        nodes: dict[Lineage, _Written] = {(): root}
        completed: list[Candidate] = []
        groups = list(policy.start())
        while groups:
            group = groups.pop(0)
            candidates = [
                self._candidate(request, group, branch, nodes) for branch in group.branches
            ]
            decision = policy.decide(group, candidates, completed)
            completed += [c for c in candidates if c.lineage in decision.completed]
            groups += decision.next
        return list(policy.final(completed))

    def _candidate(
        self, request: SolveRequest, group: Group, branch: Branch, nodes: dict[Lineage, _Written]
    ) -> Candidate:
        node = self._write(request, nodes[branch.parent], whole=group.whole)
        nodes[branch.lineage] = node
        return Candidate(branch.lineage, node.text, node.scores, node.ending)

    def _write(self, request: SolveRequest, parent: _Written, *, whole: bool) -> _Written:
        """Write one step, or on to the end of the solution, and score it."""
        model = self._generator
        tokens = list(parent.tokens)
        written = b""
        ending = Ending.LENGTH
        for count, token in enumerate(
            model.generate(
                parent.tokens,
                temp=request.sampling.temperature,
                top_k=0,
                top_p=1.0,
                min_p=0.0,
            ),
            1,
        ):
            self.generated += 1
            tokens.append(token)
            if token == model.token_eos():
                ending = Ending.END
                break
            written += model.detokenize([token])
            if not whole and b"\n\n" in written.lstrip():
                ending = Ending.STEP
                break
            if count >= request.search.step_tokens:
                break
        text = parent.text + written.decode(errors="replace")
        return _Written(tokens, text, self._scores(request.problem, text), ending)

    def _scores(self, problem: str, text: str) -> tuple[float, ...]:
        """The score of every step of a path."""
        tokens = self._judge_tokens(problem.strip() + "\n\n")
        ends: list[int] = []
        for step in text.split("\n\n"):
            if step.strip():
                tokens += self._judge_tokens(step.strip() + "<|step|>")
                ends.append(len(tokens) - 1)
        self._verifier.reset()
        self._verifier.eval(tokens)
        differences = (
            self._verifier.scores[end][self._bad] - self._verifier.scores[end][self._good]
            for end in ends
        )
        return tuple(1 / (1 + math.exp(min(float(d), 700.0))) for d in differences)

    def _prompt(self, problem: str) -> list[int]:
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": problem.strip()},
        ]
        text = self._template.render(messages)
        return self._generator.tokenize(text.encode(), add_bos=False, special=True)

    def _judge_tokens(self, text: str) -> list[int]:
        return self._verifier.tokenize(text.encode(), add_bos=False, special=True)

    def close(self) -> None:
        self._generator.close()
        self._verifier.close()


def _open(path: Path, context: int, *, logits_all: bool = False) -> Llama:
    threads = default_threads()
    return Llama(
        str(path),
        n_ctx=context,
        n_threads=threads,
        n_threads_batch=threads,
        logits_all=logits_all,
        verbose=False,
    )
