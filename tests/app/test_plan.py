"""`sapwood plan`: what fits, and why, before anything is loaded."""

import json

from tests.app.conftest import Sapwood


def test_the_alternatives_are_listed_with_the_one_that_is_taken_first(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--verifier", "seedling", "--gpu", "RTX 3070 Ti")
    assert ran.code == 0
    assert "7.0 GiB of RTX 3070 Ti may be used" in ran.out
    assert "*  collocated" in ran.out
    assert "idle cache to host" in ran.out
    assert "estimates, not measurements" in ran.out


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
    assert "smaller" in ran.err


def test_mistakes_are_told_as_such(sapwood: Sapwood) -> None:
    assert sapwood("plan", "--budget", "lots").code == 2
    assert sapwood("plan", "--generator", "unheard-of").code == 2
    unknown = sapwood("plan", "--gpu", "Voodoo 2")
    assert unknown.code == 2
    assert "RTX 4090" in unknown.err


def test_more_paths_than_a_search_can_have_are_refused(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--n", "300")
    assert ran.code == 2
    assert "at most 256 paths, not 300" in ran.err


def test_a_quantised_cache_takes_less(sapwood: Sapwood) -> None:
    sizes = [
        json.loads(sapwood("plan", "--cache", cache, "--json").out)["plan"]["options"][0]["bytes"]
        for cache in ("f16", "q8_0")
    ]
    assert sizes[1] < sizes[0]
