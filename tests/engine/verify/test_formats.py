"""How each format of the catalogue writes a solution down."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine import catalogue
from engine.errors import EngineError
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaWeights
from engine.verify.formats import BoundFormat, bind
from tests.engine.models.test_chat import LLAMA
from tests.engine.verify.fakes import FakeVocabulary

NO_TEMPLATE = ChatTemplate("")
SHEPHERD = FakeVocabulary({"ки": 12902, "+": 648, "-": 387}, {"<s>": 1}, bos=1)
LLAMA_3 = FakeVocabulary(
    {" \n\n\n\n": 23535, "+": 10, "-": 12, ".\n\n": 382},
    {
        "<|begin_of_text|>": 128000,
        "<|start_header_id|>": 128006,
        "<|end_header_id|>": 128007,
        "<|eot_id|>": 128009,
    },
    bos=128000,
)
LLAMA_TEMPLATE = ChatTemplate(LLAMA, bos="<|begin_of_text|>")


def bound(name: str, vocabulary: FakeVocabulary, template: ChatTemplate) -> BoundFormat:
    return bind(catalogue.load().format(name), vocabulary, template)


def fed(format: BoundFormat, problem: str, steps: Sequence[str]) -> list[list[int]]:
    """The tokens of the opening and of each step, as they are fed one after the other."""
    parts = [format.opening(problem)]
    for count in range(1, len(steps) + 1):
        before = [token for part in parts for token in part]
        parts.append(format.step(problem, steps[:count], before))
    return parts


def text_of(format: BoundFormat, problem: str, steps: Sequence[str]) -> str:
    vocabulary = format.vocabulary
    assert isinstance(vocabulary, FakeVocabulary)
    return vocabulary.text([token for part in fed(format, problem, steps) for token in part])


def test_math_shepherd_numbers_the_steps_and_ends_each_with_its_marker() -> None:
    format = bound("math-shepherd", SHEPHERD, NO_TEMPLATE)
    expected = "«<s>»1 plus 1? Step 1: One. «ки»\nStep 2: Two. «ки»\nStep 3: End «ки»"
    assert text_of(format, "1 plus 1?", ["One.", "Two.", "End"]) == expected
    assert text_of(format, "1 plus 1?", ["Step 1: One.", "Two.", "Step 3: End"]) == expected
    assert all(part[-1] == 12902 for part in fed(format, "1 plus 1?", ["One.", "Two."])[1:])


def test_versaprm_ends_each_step_with_four_line_ends() -> None:
    format = bound("versaprm", LLAMA_3, NO_TEMPLATE)
    assert text_of(format, "1 plus 1?", ["One.", "Two."]) == (
        "«<|begin_of_text|>»1 plus 1? \n\nOne.« \n\n\n\n»Two.« \n\n\n\n»"
    )


def test_rlhflow_answers_every_turn_but_the_last_with_plus() -> None:
    format = bound("rlhflow", LLAMA_3, LLAMA_TEMPLATE)
    head = "«<|start_header_id|>»{}«<|end_header_id|>»\n\n"
    user, assistant, end = head.format("user"), head.format("assistant"), "«<|eot_id|>»"
    assert text_of(format, "1 plus 1?", ["One.", "Two."]) == (
        f"«<|begin_of_text|>»{user}1 plus 1? One.{end}{assistant}«+»{end}{user}Two.{end}{assistant}"
    )


@pytest.mark.parametrize("name", ["rlhflow", "versaprm"])
def test_the_problem_is_an_opening_that_all_paths_share(name: str) -> None:
    format = bound(name, LLAMA_3, LLAMA_TEMPLATE)
    opening = LLAMA_3.text(format.opening("1 plus 1?"))
    assert "1 plus 1?" in opening
    assert "One" not in opening


def test_a_merge_across_the_end_of_the_opening_is_left_to_the_steps() -> None:
    merging = FakeVocabulary({"ки": 12902, "+": 648, "-": 387, " S": 7}, {}, bos=1)
    format = bound("math-shepherd", merging, NO_TEMPLATE)
    parts = fed(format, "Why?", ["Because."])
    assert [token for part in parts for token in part] == merging.tokenize(
        "Why? Step 1: Because. ки", bos=True
    )


@pytest.mark.parametrize("name", ["rlhflow", "versaprm"])
def test_control_tokens_in_a_problem_or_a_step_stay_text(name: str) -> None:
    format = bound(name, LLAMA_3, LLAMA_TEMPLATE)
    plain = [t for part in fed(format, "a b", ["c", "d"]) for t in part]
    risky = fed(format, "a<|eot_id|>b", ["c<|eot_id|>", "<|begin_of_text|>d"])
    tokens = [token for part in risky for token in part]
    for control in (128000, 128009):
        assert tokens.count(control) == plain.count(control)


def test_marker_and_score_tokens_must_have_the_ids_of_the_model() -> None:
    other = FakeVocabulary({"ки": 5, "+": 648, "-": 387}, {}, bos=1)
    with pytest.raises(EngineError, match=r"'math-shepherd'.*step marker.*token 5, not as token"):
        bound("math-shepherd", other, NO_TEMPLATE)
    split = FakeVocabulary({"+": 10, "-": 12}, {}, bos=1)
    with pytest.raises(EngineError, match=r"'versaprm'.*tokens, not as token 23535"):
        bound("versaprm", split, NO_TEMPLATE)
    swapped = FakeVocabulary({"+": 12, "-": 10}, {}, bos=1)
    with pytest.raises(EngineError, match="good token '\\+' as token 12, not as token 10"):
        bound("rlhflow", swapped, LLAMA_TEMPLATE)


def test_a_template_that_changes_earlier_turns_is_refused() -> None:
    fickle = ChatTemplate("{{ messages | length }}{{ messages[-1]['content'] }}")
    format = bound("rlhflow", LLAMA_3, fickle)
    with pytest.raises(EngineError, match="changes the turns before the last"):
        fed(format, "a", ["b", "c"])


@pytest.mark.parametrize("name", list(catalogue.load().formats))
def test_a_generator_is_refused_as_a_verifier_of_any_format(
    smollm2: LlamaWeights, name: str
) -> None:
    with pytest.raises(EngineError, match="not a verifier of the format"):
        bind(catalogue.load().format(name), smollm2.vocabulary, NO_TEMPLATE)


def test_the_seedlings_format_is_tokenized_piece_by_piece(seedling_verifier: LlamaWeights) -> None:
    vocabulary = seedling_verifier.vocabulary
    format = bind(catalogue.load().format("seedling"), vocabulary, NO_TEMPLATE)
    opening, first, second = fed(format, "Tom has 3 apples.", ["3 + 1 = 4.", "So 4<|step|>"])
    assert opening == vocabulary.tokenize("Tom has 3 apples.\n\n")
    assert first == [*vocabulary.tokenize("3 + 1 = 4."), format.marker]
    assert second == [*vocabulary.tokenize("So 4<|step|>"), format.marker]
    assert second.count(format.marker or 0) == 1
