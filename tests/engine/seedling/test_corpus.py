"""What the models are trained on: labels and targets in their places."""

from __future__ import annotations

import random
from itertools import islice

from engine.seedling.corpus import (
    IGNORE,
    LISTS,
    generator_document,
    generator_rows,
    prompt,
    verifier_document,
    verifier_opening,
    verifier_rows,
    verifier_step,
)
from engine.seedling.corrupt import corrupt
from engine.seedling.problems import Problem, boxed, judge_all, training_problems
from engine.seedling.tokenizer import MARKER, tokenizer


def problems(count: int) -> list[Problem]:
    return list(islice(training_problems(seed=11), count))


def test_a_corrupted_solution_is_wrong_from_one_step_on() -> None:
    rng = random.Random(1)
    for problem in problems(1000):
        labels = judge_all(problem, corrupt(problem, rng))
        assert not labels[-1]
        assert labels == sorted(labels, reverse=True)


def test_the_generator_is_taught_the_solution_and_nothing_else() -> None:
    for problem in problems(50):
        document = generator_document(problem)
        taught = [token for token in document.text if token != IGNORE]
        assert tokenizer().decode(taught) == problem.solution + "<|im_end|>"
        assert tokenizer().decode(document.tokens).startswith(prompt(problem.text))
        # A target is the token that follows.
        for place, target in enumerate(document.text):
            assert target == IGNORE or target == document.tokens[place + 1]


def test_every_step_the_verifier_reads_has_one_label_at_its_marker() -> None:
    rng = random.Random(2)
    marker = tokenizer().ids[MARKER]
    for problem in problems(100):
        wrong = corrupt(problem, rng)
        document = verifier_document(problem, [wrong], 1000)
        assert [label != IGNORE for label in document.label] == [
            token == marker for token in document.tokens
        ]
        labels = [
            (segment, bool(label))
            for segment, label in zip(document.segment, document.label, strict=True)
            if label != IGNORE
        ]
        assert [label for segment, label in labels if segment == 0] == [True] * len(problem.steps)
        shared = sum(a == b for a, b in zip(wrong, problem.steps, strict=False))
        expected = judge_all(problem, wrong)[shared:]
        assert [label for segment, label in labels if segment == 1] == expected


def test_a_branch_with_what_it_sees_of_the_trunk_is_the_whole_solution() -> None:
    rng = random.Random(3)
    for problem in problems(100):
        wrong = corrupt(problem, rng)
        document = verifier_document(problem, [wrong], 1000)
        branch = [place for place, segment in enumerate(document.segment) if segment == 1]
        start = document.limit[branch[0]]
        read = document.tokens[:start] + [document.tokens[place] for place in branch]
        positions = document.positions[:start] + [document.positions[p] for p in branch]
        alone = verifier_opening(problem.text) + [t for s in wrong for t in verifier_step(s)]
        assert read == alone
        assert positions == list(range(len(alone)))


def test_text_targets_on_the_trunk_are_the_tokens_that_follow() -> None:
    for problem in problems(50):
        document = verifier_document(problem, [], 1000)
        for place, target in enumerate(document.text):
            assert target == IGNORE or target == document.tokens[place + 1]


def test_right_so_far_falls_once_and_stays_down() -> None:
    rng = random.Random(4)
    for problem in problems(100):
        wrong = corrupt(problem, rng)
        document = verifier_document(problem, [wrong], 1000)
        branch = [d for d, s in zip(document.dense, document.segment, strict=True) if s == 1]
        values = [value for value in branch if value != IGNORE]
        assert values == sorted(values, reverse=True)
        # An answer given too early repeats a right number: only its marker says no.
        too_early = boxed(wrong[-1]) is not None and len(wrong) < len(problem.steps)
        assert values[-1] == 0 or too_early


def test_rows_are_full_and_all_their_lists_are_of_one_length() -> None:
    for stream in (generator_rows(1, 256, 0.6), verifier_rows(1, 256, 0.6)):
        for row in islice(stream, 20):
            assert {len(getattr(row, name)) for name in (*LISTS, "trunk")} == {256}


def test_the_same_seed_gives_the_same_rows() -> None:
    one, two = (list(islice(verifier_rows(7, 256, 0.6), 5)) for _ in range(2))
    assert one == two
