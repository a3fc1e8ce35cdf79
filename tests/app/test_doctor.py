"""`sapwood doctor`: a report to paste, after a real look and a real search."""

import json
from pathlib import Path

import pytest

from tests.app.conftest import Sapwood


def test_the_report_is_complete_works_and_does_not_name_the_user(
    sapwood: Sapwood, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: home.parent))
    ran = sapwood("doctor", "--json")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report["self_test"]["problem"] == ""
    assert report["self_test"]["tokens"] > 0
    assert report["machine"]["engine"]["version"]
    assert report["machine"]["ram"]["free"] > 0
    assert report["machine"]["data"] == "~/home"
    assert str(home) not in ran.out
