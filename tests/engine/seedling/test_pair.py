"""The shipped files, as llama.cpp sees them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from llama_cpp import Llama

from engine.seedling import generator_path, target_path, verifier_path
from engine.seedling.corpus import SEPARATOR, prompt
from engine.seedling.problems import held_out
from engine.seedling.tokenizer import MARKER, SPECIAL, tokenizer

FILES = [generator_path, verifier_path, target_path]


@pytest.fixture(scope="module", params=FILES, ids=["gen", "ver", "target"])
def model(request: pytest.FixtureRequest) -> Iterator[Llama]:
    loaded = Llama(
        str(request.param()),
        n_ctx=256,
        n_threads=1,
        n_threads_batch=1,
        logits_all=True,
        verbose=False,
    )
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def verifier() -> Iterator[Llama]:
    loaded = Llama(
        str(verifier_path()),
        n_ctx=512,
        n_threads=1,
        n_threads_batch=1,
        logits_all=True,
        verbose=False,
    )
    yield loaded
    loaded.close()


def test_all_files_are_small_and_carry_their_licence() -> None:
    for path in (found() for found in FILES):
        assert path.stat().st_size < 10_000_000
        assert list(path.parent.glob("LICENSE*"))


def test_finding_the_files_imports_nothing_heavy() -> None:
    code = (
        "import sys, engine.seedling as s; s.generator_path(), s.verifier_path();"
        "print(sorted({'torch', 'numpy', 'llama_cpp', 'gguf'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_metadata_says_what_the_model_is(model: Llama) -> None:
    metadata = model.metadata
    assert metadata["general.architecture"] == "llama"
    roles = ("generator", "verifier", "target")
    assert metadata["general.name"] in {f"seedling {role}" for role in roles}
    assert metadata["general.license"] == "apache-2.0"
    assert metadata["sapwood.demonstration"] == "simple arithmetic stories"
    is_verifier = metadata["general.name"] == "seedling verifier"
    assert metadata.get("sapwood.prm.format") == ("seedling" if is_verifier else None)
    assert ("tokenizer.chat_template" in metadata) is not is_verifier


def test_llama_cpp_tokenizes_as_in_training(model: Llama) -> None:
    problems = [*held_out(50, 4), *held_out(50, 4, "templates")]
    texts = [prompt(problem.text) + problem.solution for problem in problems]
    texts += [problem.text + SEPARATOR for problem in problems]
    texts += [problem.steps[0] + MARKER for problem in problems]
    texts += ["It's 12 + 345, isn't it?\n\n\n  Ok", "Příliš žluťoučký kůň", "数学 🙂\t\r\nx_y"]
    for text in texts:
        ids = model.tokenize(text.encode(), add_bos=False, special=True)
        assert ids == tokenizer().encode(text)
        assert model.tokenize(text.encode(), add_bos=True, special=True) == ids
        assert model.detokenize(ids, special=True).decode() == text


def test_every_special_token_is_one_token_of_the_file(model: Llama) -> None:
    for name in SPECIAL:
        assert model.tokenize(name.encode(), add_bos=False, special=True) == [tokenizer().ids[name]]


def test_the_chat_template_gives_the_training_prompt_with_or_without_a_system_message() -> None:
    model = Llama(str(generator_path()), vocab_only=True, verbose=False)
    template = ImmutableSandboxedEnvironment().from_string(
        model.metadata["tokenizer.chat_template"]
    )
    user = {"role": "user", "content": "Tom has 3 apples."}
    for messages in ([user], [{"role": "system", "content": "Think."}, user]):
        rendered = template.render(messages=messages, add_generation_prompt=True)
        assert rendered == prompt("Tom has 3 apples.")


def test_the_verifier_prefers_true_steps_to_false_ones(verifier: Llama) -> None:
    words = tokenizer()
    good, bad = words.ids["<|good|>"], words.ids["<|bad|>"]
    wins: list[bool] = []
    for problem in held_out(40, seed=8):
        margins = []
        for offset in (0, 1):
            equation = problem.program[0]
            stated = f"{equation.left}{equation.op}{equation.right}={equation.result + offset}"
            ids = words.encode(problem.text + SEPARATOR)
            ids += words.encode(problem.frames[0].format(stated) + MARKER)
            verifier.reset()
            verifier.eval(ids)
            logits = verifier.scores[len(ids) - 1]
            margins.append(logits[good] - logits[bad])
        wins.append(bool(margins[0] > margins[1]))
    assert sum(wins) >= 38
