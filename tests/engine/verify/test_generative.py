"""Verdicts in words. The models that write them here know nothing of judging, but write they do:
SmolLM2 in the formats of published critics, the embedded generator in two of its own words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace

from engine import catalogue
from engine.errors import EngineError
from engine.models.base import Span, TokenModel
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel, LlamaWeights
from engine.verify.generative import Critic, CritiqueFormat, Judgement, Solution
from tests.engine.real_models import opened
from tests.engine.verify.fakes import FakeVocabulary

PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
RIGHT = Solution((0,), ("He buys 7 more, so he has 12 + 7 = 19 apples.", "The answer is 19."))
WRONG = Solution((1,), ("He buys 7 more, so he has 12 + 7 = 20 apples.", "The answer is 20."))
FORMATS = catalogue.load().critiques
ONE = CritiqueFormat(
    opening="{problem} {solution}", end="\n\n", verdict="The answer is ", good="7", bad="9"
)
EACH = CritiqueFormat(
    each_step=True,
    opening="{problem} {step}",
    begin="{index}",
    end="\n\n",
    good="7",
    bad="9",
    close=" apples.",
)


class Recorded:
    """A token model that keeps the tokens of its paths."""

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self.paths: dict[int, list[int]] = defaultdict(list)
        self.finished: list[list[int]] = []

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def reset(self) -> None:
        self._model.reset()
        self.paths.clear()
        self.finished.clear()

    def fork(self, source: int, target: int) -> None:
        self._model.fork(source, target)
        self.paths[target] = list(self.paths[source])

    def drop(self, path: int) -> None:
        self._model.drop(path)
        self.finished.append(self.paths.pop(path))

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        for span in spans:
            for path in span.paths:
                self.paths[path] += span.tokens
        return self._model.forward(spans, columns)


@pytest.fixture
def model(seedling_generator: LlamaWeights) -> Iterator[Recorded]:
    with opened(seedling_generator, capacity=1200, paths=6, outputs=8) as model:
        yield Recorded(model)


@pytest.fixture
def template(seedling_generator: LlamaWeights) -> ChatTemplate:
    return seedling_generator.template


@pytest.fixture
def talker(smollm2: LlamaWeights) -> Iterator[Recorded]:
    with opened(smollm2, capacity=512, paths=2, outputs=4) as model:
        yield Recorded(model)


@pytest.fixture
def talk(smollm2: LlamaWeights) -> ChatTemplate:
    return smollm2.template


def judged(
    model: Recorded,
    template: ChatTemplate,
    format: CritiqueFormat,
    solutions: Sequence[Solution],
    budget: int = 24,
    context: int = 500,
) -> dict[tuple[int, ...], tuple[float, ...]]:
    critic = Critic(
        cast(TokenModel, model), template, format, PROBLEM, seed=3, budget=budget, context=context
    )
    found: list[Judgement] = [one for part in critic.judge(solutions) for one in part]
    assert model.used == sum(len(tokens) for path, tokens in model.paths.items() if path == 0)
    return {one.lineage: one.scores for one in found}


def text(model: Recorded, tokens: Sequence[int]) -> str:
    return b"".join(map(model.vocabulary.piece, tokens)).decode(errors="replace")


def share(model: Recorded, tokens: Sequence[int], good: str, bad: str) -> float:
    """p(good) / (p(good) + p(bad)) after all of `tokens`, computed by itself."""
    model.reset()
    logits = model.forward([Span((0,), tokens)])[0].astype(float)
    yes, no = (logits[model.vocabulary.tokenize(word)[-1]] for word in (good, bad))
    return float(1 / (1 + np.exp(no - yes)))


def test_the_verdict_on_a_solution_is_read_after_its_critique(
    talker: Recorded, talk: ChatTemplate
) -> None:
    scores = judged(talker, talk, FORMATS["thinkprm"], [RIGHT], budget=3)
    (tokens,) = talker.finished
    written = text(talker, tokens)
    assert f"[Solution]\n\n{RIGHT.steps[0]}\n{RIGHT.steps[1]}" in written
    assert written.endswith("\nIs the solution correct?")
    assert scores[(0,)] == pytest.approx((share(talker, tokens, " yes", " no"),), abs=2e-3)


def test_each_step_is_analysed_in_a_turn_of_its_own(talker: Recorded, talk: ChatTemplate) -> None:
    scores = judged(talker, talk, FORMATS["genprm"], [WRONG], budget=3)
    (tokens,) = talker.finished
    written = text(talker, tokens)
    assert [f"Paragraph {k} step by step: " in written for k in (1, 2, 3)] == [True, True, False]
    assert written.count("<output>\n**Judgement**: $\\boxed{") == 2
    assert len(scores[(1,)]) == 2
    assert scores[(1,)][-1] == pytest.approx(share(talker, tokens, "Yes", "No"), abs=2e-3)


@pytest.mark.parametrize("format", [ONE, EACH])
def test_a_judgement_depends_on_nothing_but_its_solution(
    format: CritiqueFormat, model: Recorded, template: ChatTemplate
) -> None:
    both = judged(model, template, format, [RIGHT, WRONG])
    assert both[(0,)] != both[(1,)]
    for solution in (WRONG, RIGHT):
        alone = judged(model, template, format, [solution])
        assert alone[solution.lineage] == pytest.approx(both[solution.lineage], abs=2e-3)


def test_more_solutions_than_fit_are_judged_one_after_another(
    model: Recorded, template: ChatTemplate
) -> None:
    many = [Solution((i,), RIGHT.steps) for i in range(9)]
    scores = judged(model, template, ONE, many, budget=4, context=400)
    assert [len(scores[(i,)]) for i in range(9)] == [1] * 9


def test_a_solution_without_room_for_a_verdict_has_no_scores(
    model: Recorded, template: ChatTemplate
) -> None:
    endless = Solution((2,), ("12 + 7 = 19. " * 100,))
    scores = judged(model, template, ONE, [endless, RIGHT], context=200)
    assert scores[(2,)] == ()
    assert len(scores[(0,)]) == 1
    assert judged(model, template, ONE, [endless], context=200) == {(2,): ()}


def test_a_critique_ends_where_its_context_does(model: Recorded, template: ChatTemplate) -> None:
    endless = replace(ONE, end="never written")
    prompt = len(template.encode(model.vocabulary, [{"role": "user", "content": PROBLEM}]))
    scores = judged(model, template, endless, [RIGHT], budget=9999, context=prompt + 70)
    assert len(scores[(0,)]) == 1
    assert len(model.finished[0]) <= prompt + 70


def test_what_the_model_ends_itself_is_not_ended_again(
    model: Recorded, template: ChatTemplate
) -> None:
    ended = replace(ONE, end=".", verdict="", temperature=0.0)
    judged(model, template, ended, [RIGHT], budget=60)
    critique = text(model, model.finished[0]).rpartition("assistant\n")[2]
    assert critique.count(".") == 1
    assert critique.endswith(".")


class Writing:
    """A token model that writes one text whatever it reads, and finds it good."""

    name, max_paths, capacity, trained_context, used = "writing", 3, 4000, 4000, 0

    def __init__(self, text: str) -> None:
        self.vocabulary = FakeVocabulary({"Yes": 1, "No": 2}, {})
        self.next = iter(self.vocabulary.tokenize(text))

    def reset(self) -> None: ...

    def fork(self, source: int, target: int) -> None: ...

    def drop(self, path: int) -> None: ...

    def length(self, path: int) -> int:
        return 0

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        rows = np.full((sum(len(span.wanted) for span in spans), 120_000), -50, np.float32)
        rows[:, [next(self.next, 1) for _ in rows]] = 50
        return rows


def test_code_in_a_critique_is_text_and_is_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    code = f"```python\nimport os\nos.mkdir({str(proof)!r})\n```\n</analyze>"
    critic = Critic(
        cast(TokenModel, Writing(code)),
        ChatTemplate("{{ messages[-1]['content'] }}"),
        FORMATS["genprm"],
        PROBLEM,
        seed=3,
        budget=500,
        context=4000,
    )
    (*_, (found,)) = critic.judge([Solution((0,), RIGHT.steps[:1])])
    assert found.scores == pytest.approx((1.0,))
    assert critic.fed_tokens > len(code)
    assert not proof.exists()


def test_no_solutions_give_no_judgements(model: Recorded, template: ChatTemplate) -> None:
    assert judged(model, template, ONE, []) == {}


def test_a_vocabulary_without_the_verdicts_is_refused(
    model: Recorded, template: ChatTemplate
) -> None:
    with pytest.raises(EngineError, match="not as one"):
        judged(model, template, FORMATS["genprm"], [RIGHT])
