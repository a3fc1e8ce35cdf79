"""What an exported conversation or run looks like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.export import Document, document_of_run, document_of_session, export
from app.store import Role, State, Store
from engine.protocol import encode
from tests.app.streams import beginning, first_round, numbered, whole_run

EVIL = "</pre><script>alert(1)</script> `x` ```` \x1b[31m \u202e <img src=http://x> & \\(x^2\\)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "sessions.db") as store:
        yield store


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(map(encode, whole_run(text=EVIL))))
    return path


@pytest.fixture
def conversation(store: Store, log: Path) -> Document:
    """Two branches: the second question was asked twice, and the first time is open."""
    session = store.create("Apples & <pears>").id
    asked = store.add(session, Role.USER, "How many?").id
    given = store.add(session, Role.ASSISTANT, EVIL, parent=asked, log=log).id
    store.update(given, answer="8")
    kept = store.add(session, Role.USER, "And pears?", parent=given).id
    store.add(session, Role.USER, "And plums?", parent=given)
    failed = store.add(session, Role.ASSISTANT, "", parent=kept, state=State.FAILED).id
    store.update(failed, note="It did not work.")
    return document_of_session(store, session)


def test_markdown_has_every_branch_and_the_exact_text(conversation: Document) -> None:
    blocks = export(conversation, "markdown").split("\n\n")
    assert blocks[0] == r"# Apples & \<pears\>"
    assert blocks[2:7] == ["## 1. You", "How many?", "## 2. Sapwood", EVIL, "**Answer:** 8"]
    assert blocks[-8:] == [
        "## 3. You",
        "And pears?",
        "## 4. Sapwood",
        "*failed: It did not work.*",
        "---",
        "*Another branch, after message 2*",
        "## 5. You",
        "And plums?\n",
    ]


def test_the_tree_in_markdown_stays_in_its_fence(conversation: Document) -> None:
    text = export(conversation, "markdown")
    assert "<summary>Reasoning tree, 7 steps</summary>\n\n`````text\n├─ ●" in text
    assert text.count("`````") == 2


def test_json_has_everything(conversation: Document, log: Path) -> None:
    content = json.loads(export(conversation, "json"))
    assert (content["format"], content["version"]) == ("sapwood-session", 1)
    assert content["session"]["title"] == "Apples & <pears>"
    messages = content["messages"]
    assert [m["text"] for m in messages] == ["How many?", EVIL, "And pears?", "", "And plums?"]
    assert messages[4]["parent"] == messages[1]["id"]
    assert messages[1]["log"] == str(log)
    run = messages[1]["run"]
    assert run["answered"]["answer"] == "8"
    nodes = {tuple(node["lineage"]): node for node in run["nodes"]}
    assert len(nodes) == 7
    assert nodes[0,]["text"] == EVIL
    assert (nodes[1,]["state"], nodes[1,]["scores"]) == ("pruned", [0.4])


class _Page(HTMLParser):
    """Checks that a page is well formed, and collects what could fetch or run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.deepest = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in ("meta", "hr"):
            self.open.append(tag)
        self.deepest = max(self.deepest, self.open.count("details"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_and_runs_nothing(conversation: Document) -> None:
    text = export(conversation, "html")
    page = _Page(text)
    assert page.open == []
    assert page.tags.isdisjoint({"script", "img", "link", "iframe", "object", "form"})
    assert page.links == ["#m2"]
    assert "default-src 'none'" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_folds_all_but_the_best_path(log: Path) -> None:
    text = export(document_of_run(log), "html")
    assert _Page(text).deepest == 3
    assert text.count('<details class="pruned"><summary>') == 3
    assert text.count('<details class="kept" open>') == 1
    assert text.count('<details class="answer" open>') == 1
    assert '<span style="width:90%"></span></span> <span class="score">0.90</span>' in text
    assert "pruned: ranked below 2 others" in text


@pytest.mark.parametrize("format", ["markdown", "json", "html"])
def test_an_interrupted_run_is_exported_as_far_as_it_came(
    tmp_path: Path, store: Store, format: str
) -> None:
    log = tmp_path / "torn.jsonl"
    log.write_bytes(b"".join(map(encode, numbered([*beginning(), *first_round()])))[:-30])
    assert "Tom finds 5 apples." in export(document_of_run(log), format)
    session = store.create("torn").id
    store.add(session, Role.ASSISTANT, "", log=log, state=State.RUNNING)
    text = export(document_of_session(store, session), format)
    assert "Tom has 3 apples." in text
    assert "Tom finds 5 apples." in text


@pytest.mark.parametrize("format", ["markdown", "json", "html"])
def test_a_session_whose_logs_are_gone_is_exported_all_the_same(
    tmp_path: Path, store: Store, format: str
) -> None:
    session = store.create("kept").id
    store.add(session, Role.ASSISTANT, "the text", log=tmp_path / "gone.jsonl")
    assert "the text" in export(document_of_session(store, session), format)
