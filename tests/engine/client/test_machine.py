"""The commonest trap is named, with the command that gets out of it."""

import pytest

from engine.client.machine import Engine, advise, describe
from engine.client.wheels import cuda_wheel
from engine.memory.devices import Device, Kind, Nvidia
from engine.memory.sizes import GIB
from engine.places import own_catalogue

CARD = Device("RTX 4090", Kind.GPU, 24 * GIB, 20 * GIB, capability=(8, 9))
PROCESSOR_ONLY = Engine(version="0.3.36", gpu=False)


def test_a_build_for_the_processor_on_a_machine_with_a_gpu_is_told_with_the_right_wheel() -> None:
    driver = Nvidia(driver="550.1", cuda=(12, 4), gpus=(CARD,))
    (advice,) = advise(driver, PROCESSOR_ONLY, apple=False)
    assert "RTX 4090 is not used" in advice
    assert "--only-binary llama-cpp-python" in advice  # or pip compiles what it does not find
    assert "/whl/cu124 llama-cpp-python==0.3.36" in advice


def test_a_version_that_the_index_lacks_is_warned_of() -> None:
    driver = Nvidia(driver="550.1", cuda=(12, 4), gpus=(CARD,))
    (advice,) = advise(driver, PROCESSOR_ONLY, apple=False)
    assert "if pip finds no such version, the index lacks it" in advice


def test_a_mistake_in_the_own_catalogue_is_reported_and_stops_nothing() -> None:
    path = own_catalogue()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[generators.mine]\nfil = 'x.gguf'\n")
    machine = describe()
    assert machine.models == ()
    assert f"{path}, line 2: generators.mine.fil" in machine.advice[0]
    assert machine.engine.version


def test_a_mac_is_given_the_metal_wheel() -> None:
    (advice,) = advise(Nvidia(problem="none"), PROCESSOR_ONLY, apple=True)
    assert "/whl/metal" in advice


def test_nothing_is_said_where_there_is_nothing_to_gain() -> None:
    assert advise(Nvidia(problem="none"), PROCESSOR_ONLY, apple=False) == []
    assert advise(Nvidia(gpus=(CARD,)), Engine(version="0.3.36", gpu=True), apple=False) == []


def test_a_missing_llama_cpp_is_told_with_the_command_that_installs_it() -> None:
    (advice,) = advise(Nvidia(), Engine(problem="llama.cpp cannot be loaded"), apple=False)
    assert "/whl/cpu" in advice


@pytest.mark.parametrize(
    ("cuda", "capability", "wheel"),
    [
        ((12, 4), (8, 6), "cu124"),
        ((12, 8), (8, 6), "cu125"),
        ((13, 0), (8, 9), "cu130"),
        ((13, 1), (6, 1), "cu125"),  # CUDA 13 has dropped Pascal
        ((11, 2), (8, 6), None),
        (None, None, None),
    ],
)
def test_the_wheel_is_the_newest_that_driver_and_card_run(
    cuda: tuple[int, int] | None, capability: tuple[int, int] | None, wheel: str | None
) -> None:
    assert cuda_wheel(cuda, capability) == wheel
