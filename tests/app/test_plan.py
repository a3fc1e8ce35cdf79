"""`sapwood plan`: what fits, and why, before anything is loaded."""

import json

from app.options import CACHES
from tests.app.conftest import Sapwood


def test_the_alternatives_are_listed_with_the_one_that_is_taken_first(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--verifier", "seedling", "--gpu", "RTX 3070 Ti")
    assert ran.code == 0
    assert "7.0 GiB of RTX 3070 Ti may be used" in ran.out
    assert "*  collocated" in ran.out
    assert "idle cache to host" in ran.out
    assert "estimates, not measurements" in ran.out


def test_without_options_it_is_the_pair_that_solve_takes(sapwood: Sapwood) -> None:
    found = json.loads(sapwood("plan", "--gpu", "RTX 4090", "--json").out)
    assert found["verifier"]["name"]
    alone = sapwood("plan", "--generator", "smollm2-135m-instruct", "--gpu", "RTX 4090", "--json")
    assert json.loads(alone.out)["verifier"] is None


def test_paths_longer_than_the_models_can_have_are_told_of(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--context", "100000", "--gpu", "RTX 4090")
    assert "Paths end at 1,024 tokens, not at 100,000" in ran.out
    assert "Paths end" not in sapwood("plan", "--gpu", "RTX 4090").out


def test_json_is_one_object_that_says_it_is_an_estimate(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--verifier", "seedling", "--gpu", "RTX 4090", "--json")
    found = json.loads(ran.out)
    assert found["estimate"] is True
    assert found["plan"]["options"][0]["strategy"] == "collocated"
    assert found["plan"]["options"][0]["generator"]["cells"] == 8 * 1024


def test_what_does_not_fit_is_refused_with_numbers_and_a_way_out(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--generator", "smollm2-135m-instruct", "--budget", "100M")
    assert ran.code == 5
    assert "need at least" in ran.err
    assert "100 MiB may be used" in ran.err
    assert "Raise --budget to at least" in ran.err
    assert "smaller" in ran.err


def test_a_processor_with_other_memory_can_be_planned_for(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--gpu", "CPU 16 GB")
    assert "15.0 GiB of CPU 16 GB may be used" in ran.out


def test_a_draft_model_takes_its_part_and_rules_turns_out(sapwood: Sapwood) -> None:
    pair = (
        "plan",
        "--generator",
        "seedling-target",
        "--verifier",
        "seedling",
        "--gpu",
        "CPU 16 GB",
    )
    alone = json.loads(sapwood(*pair, "--json").out)
    ran = sapwood(*pair, "--draft", "seedling", "--json")
    drafted = json.loads(ran.out)
    assert alone["beside"] == 0
    assert drafted["beside"] > 0
    assert drafted["plan"]["least"] >= alone["plan"]["least"] + drafted["beside"]
    assert {option["strategy"] for option in drafted["plan"]["options"]} == {"collocated"}
    assert "are the draft model's" in sapwood(*pair, "--draft", "seedling").out


def test_mistakes_are_told_as_such(sapwood: Sapwood) -> None:
    assert sapwood("plan", "--budget", "lots").code == 2
    assert sapwood("plan", "--generator", "unheard-of", "--gpu", "RTX 4090").code == 2
    unknown = sapwood("plan", "--gpu", "Voodoo 2")
    assert unknown.code == 2
    assert "RTX 4090" in unknown.err


def test_more_paths_than_a_search_can_have_are_refused(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--n", "300")
    assert ran.code == 2
    assert "300 is not in the range 1<=x<=256" in ran.err


def test_a_quantised_cache_takes_less(sapwood: Sapwood) -> None:
    there = ("plan", "--gpu", "RTX 4090", "--json")
    plans = [json.loads(sapwood(*there, "--cache", cache).out)["plan"] for cache in CACHES]
    sizes = [plan["options"][0]["bytes"] for plan in plans]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
