"""Memory is what the control groups of this process leave of it, read anew each time."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.memory.devices import Kind, nvidia, ram
from engine.memory.sizes import GIB, MIB, parse_size, size_text


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
