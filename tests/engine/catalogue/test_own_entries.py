"""The user's own catalogue: it extends and overrides, and its mistakes are named where they are."""

import shutil
from pathlib import Path

import pytest

from engine import catalogue, seedling
from engine.errors import EngineError
from engine.places import own_catalogue
from engine.protocol.events import Trouble


def write(text: str) -> Path:
    path = own_catalogue()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def mistake(text: str) -> str:
    """What is said of a file, without its path."""
    path = write(text)
    with pytest.raises(EngineError) as caught:
        catalogue.load()
    assert caught.value.trouble is Trouble.USAGE
    assert caught.value.message.startswith(str(path))
    return caught.value.message.removeprefix(str(path))


def test_a_new_entry_stands_beside_the_shipped_ones(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    shutil.copy(seedling.generator_path(), mine)
    write(f'[generators.mine]\nfile = {str(mine)!r}\nlicence = "mine"\n')
    assert catalogue.generator_file("mine") == mine
    assert catalogue.generator_file("seedling") == seedling.generator_path()


def test_a_path_is_seen_from_the_file_it_stands_in() -> None:
    path = write('[generators.mine]\nfile = "files/mine.gguf"\n')
    (path.parent / "files").mkdir()
    shutil.copy(seedling.generator_path(), path.parent / "files" / "mine.gguf")
    assert catalogue.generator_file("mine") == path.parent / "files" / "mine.gguf"


def test_an_entry_of_a_known_id_changes_only_its_own_keys(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    shutil.copy(seedling.generator_path(), mine)
    write(f"[generators.'qwen2.5-1.5b-instruct']\nfile = {str(mine)!r}\n")
    assert catalogue.generator_file("qwen2.5-1.5b-instruct") == mine
    assert catalogue.load().generators["qwen2.5-1.5b-instruct"].licence == "Apache-2.0"


def test_a_change_of_the_file_is_seen_at_once() -> None:
    write('[generators.one]\nfile = "one.gguf"\n')
    assert "one" in catalogue.load().generators
    write('[generators.another]\nfile = "another.gguf"\n')
    assert "one" not in catalogue.load().generators


def test_a_file_that_is_named_and_not_there_is_told_with_the_place_to_correct() -> None:
    path = write('[generators.mine]\nfile = "gone.gguf"\n')
    with pytest.raises(EngineError, match="not on this machine") as caught:
        catalogue.generator_file("mine")
    assert str(path) in caught.value.advice


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '# mine\n[generators.a]\nfile = "a.gguf"\ncontext = "long"\n',
            ", line 4: generators.a.context: Expected `int | null`, got `str`.",
        ),
        (
            '[generators.a]\nfile = "a.gguf"\n\n[generators."b.c"]\nfile = "b"\nlicense = "MIT"\n',
            ", line 6: generators.b.c.license: Object contains unknown field `license`.",
        ),
        (
            '[verifiers.v]\nabout = """\nfile = 1\n"""\nformat = "no-such"\nfile = "v.gguf"\n',
            ", line 5: verifiers.v.format: there is no format 'no-such'.",
        ),
        (
            '\n[generators.a]\nlicence = "MIT"\n',
            ", line 2: generators.a: Object missing required field `file`.",
        ),
        (
            '[generators]\na = {file = "a", context = -1.5}\n',
            ", line 2: generators.a.context: Expected `int | null`, got `float`.",
        ),
        (
            '[generators.a]\nfile = "hub:only-one-part"\n',
            ", line 2: generators.a.file: 'hub:only-one-part' is not hub:OWNER/NAME/FILE.",
        ),
        (
            '[generators.a]\nfile = "hub:a/b/../../../.bashrc"\n',
            ", line 2: generators.a.file: 'hub:a/b/../../../.bashrc' is not hub:OWNER/NAME/FILE.",
        ),
        (
            "[generator.a]\nfile = 1\n",
            ", line 1: generator: there are only generators, verifiers, formats, critiques, "
            "presets.",
        ),
        ("generators = 3\n", ", line 1: generators: a table is expected."),
        (
            "[presets.gpu-8]\ngenerator = 'nobody'\n",
            ", line 2: presets.gpu-8.generator: there is no generator 'nobody'.",
        ),
        ("[presets.gpu-8]\nfree = 'lots'\n", ", line 2: presets.gpu-8.free: 'lots' is not a size"),
        (
            "[formats.mine]\nstyle = 'song'\ngood = '+'\nbad = '-'\n",
            ", line 2: formats.mine.style: Invalid enum value 'song'.",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(text: str, told: str) -> None:
    assert mistake(text).startswith(told)


def test_what_is_no_toml_is_told_with_its_line() -> None:
    assert " is not TOML" in mistake("[generators.a\nfile = 1\n")
    assert "line 1" in mistake("[generators.a\nfile = 1\n")
