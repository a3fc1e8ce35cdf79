"""How each format of the catalogue writes a solution down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine import catalogue
from engine.errors import EngineError
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaWeights
from engine.verify.formats import BoundFormat, PrmFormat, bind
from engine.verify.heads import Head
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
QWEN = FakeVocabulary(
    {"\n": 198, "\n\n": 271, ".\n\n": 382},
    {"<|im_start|>": 151644, "<|im_end|>": 151645, "<extra_0>": 151651},
)
HEAD = Head("", ((np.ones((1, 4), np.float32), np.zeros(1, np.float32)),), {})
LLAMA_TEMPLATE = ChatTemplate(LLAMA, bos="<|begin_of_text|>")


def bound(name: str, vocabulary: FakeVocabulary, template: ChatTemplate) -> BoundFormat:
    return bind(catalogue.load().format(name), vocabulary, template, HEAD)


def fed(format: BoundFormat, problem: str, steps: Sequence[str]) -> list[list[int]]:
    """The tokens of the opening and of each step, as they are fed one after the other."""
    parts = [format.opening(problem)]
    for count in range(1, len(steps) + 1):
        before = [token for part in parts for token in part]
        parts.append(format.step(problem, steps[:count], before).tokens)
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


def test_qwens_prm_ends_each_step_of_the_assistants_turn_with_its_marker() -> None:
    format = bound("qwen2.5-math-prm", QWEN, NO_TEMPLATE)
    assert text_of(format, "1 plus 1?", ["One.", "Two."]) == (
        "«<|im_start|>»system«\n»Please reason step by step, and put your final answer within "
        "\\boxed{}.«<|im_end|>»«\n»«<|im_start|>»user«\n»1 plus 1?«<|im_end|>»«\n»"
        "«<|im_start|>»assistant«\n»One.«<extra_0>»Two.«<extra_0>»"
    )


def test_skywork_ends_each_line_with_a_line_end_and_counts_the_last_of_a_step() -> None:
    format = bound("skywork", QWEN, NO_TEMPLATE)
    assert text_of(format, "1 plus 1?", ["One.\nTwo.", "Three."]) == (
        "«<|im_start|>»1 plus 1?«\n»One.«\n»Two.«\n»Three.«\n»"
    )


@pytest.mark.parametrize(("name", "separator"), [("trl", "«\n\n»"), ("trl-lines", "«\n»")])
def test_trl_has_no_separator_before_the_first_step_and_merges_none(
    name: str, separator: str
) -> None:
    format = bound(name, QWEN, NO_TEMPLATE)
    assert text_of(format, "1 plus 1?", ["One.", "Two."]) == (
        f"1 plus 1?One.{separator}Two.{separator}"
    )


def test_reasonflux_reads_at_the_last_token_of_what_there_is() -> None:
    format = bound("reasonflux-1.5b", QWEN, NO_TEMPLATE)
    parts = fed(format, "1 plus 1?", ["One", "Two", ""])
    assert [QWEN.text(part) for part in parts] == ["1 plus 1?", "One", "«\n\n»Two", "«\n\n»"]
    assert fed(format, "1 plus 1?", [""])[1] == [198]


@pytest.mark.parametrize("steps", [["One.", "Two.", "Three"], ["One.", ".", "."], ["1.\n\n2."]])
def test_reasonflux_reads_each_step_in_the_tokens_of_the_text_that_ends_with_it(
    steps: list[str],
) -> None:
    format = bound("reasonflux-1.5b", QWEN, NO_TEMPLATE)
    before = format.opening("1 plus 1?")
    for count in range(1, len(steps) + 1):
        found = format.step("1 plus 1?", steps[:count], before)
        text = "1 plus 1?" + "\n\n".join(steps[:count])
        assert before + found.tokens + found.tail == QWEN.tokenize(text)
        assert QWEN.text(found.tail) == ("." if text[-1] == "." else "")
        before += found.tokens


def test_an_opening_leaves_out_what_may_be_one_token_with_a_step() -> None:
    merging = FakeVocabulary({"?**": 7, "\n": 198}, {})
    format = bound("reasonflux-1.5b", merging, NO_TEMPLATE)
    assert merging.text(format.opening("Why?")) == "Why"


@pytest.mark.parametrize("name", ["qwen2.5-math-prm", "reasonflux", "skywork"])
def test_a_marker_written_by_the_user_stays_text(name: str) -> None:
    format = bound(name, QWEN, NO_TEMPLATE)
    plain = [t for part in fed(format, "a b", ["c", "d"]) for t in part]
    risky = fed(format, "a<|im_end|><extra_0>b", ["c<extra_0>", "<|im_start|>d"])
    tokens = [token for part in risky for token in part]
    for control in (151644, 151645, 151651):
        assert tokens.count(control) == plain.count(control)


def test_a_format_with_a_head_needs_one() -> None:
    format = catalogue.load().format("skywork")
    with pytest.raises(EngineError, match="'skywork' scores with a head of its own") as caught:
        bind(format, QWEN, NO_TEMPLATE)
    assert "sapwood models convert" in caught.value.advice


def test_control_tokens_of_a_layout_must_have_the_ids_of_the_model() -> None:
    other = FakeVocabulary({"\n": 198}, {"<|im_start|>": 5})
    with pytest.raises(EngineError, match=r"control token '<\|im_start\|>' as token 5, not as"):
        bound("skywork", other, NO_TEMPLATE)
    base = FakeVocabulary({"\n": 198}, {"<|quad_end|>": 151651})
    with pytest.raises(EngineError, match="step marker '<extra_0>' as 9 tokens"):
        bound("qwen2.5-math-prm", base, NO_TEMPLATE)


def test_a_format_says_how_it_scores() -> None:
    with pytest.raises(ValueError, match="a good and a bad token are needed"):
        PrmFormat(style="end")
    with pytest.raises(ValueError, match="needs a marker"):
        PrmFormat(style="marker", head=True)


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
    with pytest.raises(EngineError, match="verifier of the format"):
        bind(catalogue.load().format(name), smollm2.vocabulary, NO_TEMPLATE)


def test_the_seedlings_format_is_tokenized_piece_by_piece(seedling_verifier: LlamaWeights) -> None:
    vocabulary = seedling_verifier.vocabulary
    format = bind(catalogue.load().format("seedling"), vocabulary, NO_TEMPLATE)
    opening, first, second = fed(format, "Tom has 3 apples.", ["3 + 1 = 4.", "So 4<|step|>"])
    assert opening == vocabulary.tokenize("Tom has 3 apples.\n\n")
    assert first == [*vocabulary.tokenize("3 + 1 = 4."), format.marker]
    assert second == [*vocabulary.tokenize("So 4<|step|>"), format.marker]
    assert second.count(format.marker or 0) == 1
