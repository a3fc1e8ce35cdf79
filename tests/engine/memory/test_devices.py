"""Memory is what the control groups of this process leave of it, read anew each time."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import convert

from engine.memory.devices import Device, Kind, Nvidia, accelerator, nvidia, ram
from engine.memory.learnt import own_device
from engine.memory.sizes import GIB, MIB, parse_size, size_text
from engine.memory.speed import speeds
from engine.models.devices import Native, native_devices


def test_a_control_group_limits_memory(tmp_path: Path) -> None:
    _group(tmp_path, "job", limit=str(512 * MIB), current=300 * MIB, cache=100 * MIB)
    memory = ram(tmp_path)
    assert memory.total == 512 * MIB
    assert memory.free == 312 * MIB  # what the page cache holds can be had back


def test_the_limit_of_a_parent_counts_as_well(tmp_path: Path) -> None:
    _group(tmp_path, "", limit=str(256 * MIB), current=0, cache=0)
    _group(tmp_path, "job", limit="max", current=0, cache=0)
    assert ram(tmp_path).total == 256 * MIB


def test_without_control_groups_the_machine_is_the_limit(tmp_path: Path) -> None:
    memory = ram(tmp_path)
    assert 0 < memory.free <= memory.total


def test_the_older_layout_of_control_groups_is_read(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("5:cpu:/\n4:memory:/job\n")
    group = tmp_path / "sys/fs/cgroup/memory/job"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(str(512 * MIB))
    (group / "memory.usage_in_bytes").write_text(str(12 * MIB))
    (group / "memory.stat").write_text("total_inactive_file 0\n")
    assert ram(tmp_path).free == 500 * MIB


def test_a_missing_driver_is_a_state_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "not installed" in nvidia().problem


def test_a_gpu_is_described_as_its_driver_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _driver())
    found = nvidia()
    (gpu,) = found.gpus
    assert (found.driver, found.cuda) == ("550.1", (12, 4))
    assert (gpu.name, gpu.kind, gpu.free, gpu.capability) == (
        "RTX 4090",
        Kind.GPU,
        20 * GIB,
        (8, 9),
    )
    assert gpu.link == pytest.approx(31.5e9, rel=0.01)  # PCI Express 4.0, 16 lanes


@pytest.mark.parametrize(
    ("text", "size"), [("6G", 6 * GIB), ("6.5 GiB", 13 * GIB // 2), ("900M", 900 * MIB), ("5", 5)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "6X", "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_sizes_are_written_as_people_read_them() -> None:
    assert size_text(7.94 * GIB) == "7.9 GiB"
    assert size_text(512 * MIB) == "512 MiB"


def _group(root: Path, name: str, *, limit: str, current: int, cache: int) -> None:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"0::/{name}\n")
    group = root / "sys/fs/cgroup" / name
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{current}\n")
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {cache}\n")


def _driver() -> SimpleNamespace:
    """A driver with one GPU, as the binding shows it."""
    return SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "550.1",
        nvmlSystemGetCudaDriverVersion=lambda: 12040,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: "NVIDIA GeForce RTX 4090",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=24 * GIB, free=20 * GIB),
        nvmlDeviceGetMaxPcieLinkGeneration=lambda handle: 4,
        nvmlDeviceGetMaxPcieLinkWidth=lambda handle: 16,
        nvmlDeviceGetCudaComputeCapability=lambda handle: (8, 9),
    )


def _native(name: str, description: str, backend: str, kind: str, free: int) -> Native:
    return convert(
        {
            "name": name,
            "description": description,
            "backend": backend,
            "kind": kind,
            "free": free * GIB,
            "total": 24 * GIB,
        },
        Native,
    )


CPU = _native("CPU", "some processor", "CPU", "cpu", 20)
MEMORY = Device("RAM", Kind.RAM, 16 * GIB, 10 * GIB)


def test_the_gpu_with_most_free_memory_is_taken_and_connected_as_its_driver_says() -> None:
    found = [
        CPU,
        _native("CUDA0", "NVIDIA GeForce RTX 3060", "CUDA", "gpu", 4),
        _native("CUDA1", "NVIDIA GeForce RTX 4090", "CUDA", "gpu", 20),
    ]
    known = Device("RTX 4090", Kind.GPU, 24 * GIB, 20 * GIB, link=3e10, capability=(8, 9))
    device = accelerator(found, MEMORY, Nvidia(gpus=(known,)), speeds())
    assert device is not None
    assert (device.name, device.native, device.kind) == ("RTX 4090", "CUDA1", Kind.GPU)
    assert (device.backend, device.link, device.free) == ("cuda", 3e10, 20 * GIB)
    assert device.speed is not None


def test_a_gpu_of_another_maker_is_used_as_llama_cpp_lists_it() -> None:
    found = [CPU, _native("Vulkan0", "AMD Radeon RX 7800 XT", "Vulkan", "gpu", 15)]
    device = accelerator(found, MEMORY, Nvidia(), speeds())
    assert device is not None
    assert (device.kind, device.backend, device.free) == (Kind.GPU, "vulkan", 15 * GIB)
    assert device.link is None  # so that nothing is planned to be moved


def test_the_gpu_of_a_mac_has_no_more_than_what_is_free_of_the_memory_it_shares() -> None:
    found = [_native("Metal", "Apple M2", "Metal", "gpu", 12), CPU]
    device = accelerator(found, MEMORY, Nvidia(), {})
    assert device is not None
    assert (device.name, device.kind, device.backend) == ("M2", Kind.UNIFIED, "metal")
    assert (device.free, device.total) == (10 * GIB, 16 * GIB)


def test_a_gpu_that_is_part_of_the_processor_is_taken_where_there_is_no_other() -> None:
    part = _native("Vulkan0", "Intel Iris Xe", "Vulkan", "igpu", 12)
    device = accelerator([CPU, part], MEMORY, Nvidia(), {})
    assert device is not None
    assert (device.kind, device.free) == (Kind.UNIFIED, 10 * GIB)
    other = _native("Vulkan1", "Intel Arc A770", "Vulkan", "gpu", 8)
    device = accelerator([CPU, part, other], MEMORY, Nvidia(), {})
    assert device is not None
    assert device.native == "Vulkan1"


def test_with_a_processor_alone_there_is_nothing_else_to_compute_on() -> None:
    assert accelerator([CPU], MEMORY, Nvidia(), {}) is None


def test_the_installed_llama_cpp_lists_the_processor_with_its_memory() -> None:
    found = native_devices()
    assert [one for one in found if one.kind == "cpu"]
    assert all(0 <= one.free <= one.total for one in found)


def test_a_gpu_that_is_not_used_is_never_passed_over_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _driver())
    device, note = own_device([CPU], gpu=False)
    assert device.kind is not Kind.GPU
    assert "RTX 4090 is not used" in note
    assert "processor only" in note
    assert "sapwood doctor" in note
    assert "does not find it" in own_device([CPU], gpu=True)[1]
