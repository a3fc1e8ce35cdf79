"""What was measured is kept, and found again for exactly the same."""

from pathlib import Path

from engine.memory.estimate import CacheType, Setting
from engine.memory.record import Key, Measurement, Records, TurnMeasurement, identity

SETTING = Setting(2048, 18, 64)
KEY = Key.of("1-a", SETTING, "cpu")


def test_a_measurement_is_found_in_a_later_run(tmp_path: Path) -> None:
    Records(tmp_path / "sub" / "memory.jsonl").add(Measurement(KEY, 100, 110))
    found = Records(tmp_path / "sub" / "memory.jsonl").find(KEY)
    assert found == Measurement(KEY, 100, 110)


def test_the_last_measurement_counts(tmp_path: Path) -> None:
    records = Records(tmp_path / "memory.jsonl")
    records.add(Measurement(KEY, 100, 110))
    records.add(Measurement(KEY, 100, 120))
    found = records.find(KEY)
    assert found is not None
    assert found.measured == 120


def test_another_cache_type_context_or_backend_is_another_measurement(tmp_path: Path) -> None:
    records = Records(tmp_path / "memory.jsonl")
    records.add(Measurement(KEY, 100, 110))
    assert records.find(Key.of("1-a", SETTING, "cuda")) is None
    assert records.find(Key.of("1-a", Setting(4096, 18, 64), "cpu")) is None
    assert records.find(Key.of("1-a", Setting(2048, 18, 64, cache=CacheType.Q8_0), "cpu")) is None


def test_the_next_prediction_is_raised_by_what_was_missing_at_any_size(tmp_path: Path) -> None:
    records = Records(tmp_path / "memory.jsonl")
    records.add(Measurement(KEY, 100, 110))
    assert records.surplus("1-a", "f16", "cpu") == 10
    assert records.surplus("1-a", "f16", "cuda") == 0
    records.add(Measurement(KEY, 100, 90))
    assert records.surplus("1-a", "f16", "cpu") == 0


def test_of_turns_the_median_of_the_last_runs_counts_by_the_byte(tmp_path: Path) -> None:
    records = Records(tmp_path / "memory.jsonl")
    records.add(Measurement(KEY, 100, 110))
    larger = Key.of("1-a", Setting(4096, 18, 64), "cpu")
    for key, moved, seconds in ((KEY, 100, 90.0), (KEY, 100, 2.0), (larger, 200, 4.0)):
        records.add(TurnMeasurement(key, True, "idle", moved, 1.0, seconds))
    assert records.turns("1-a", "f16", "cpu", verifies=True) == {"idle": 0.02}
    assert records.turns("1-a", "f16", "cpu", verifies=False) == {}
    assert records.turns("1-a", "f16", "cuda", verifies=True) == {}
    assert records.find(KEY) == Measurement(KEY, 100, 110)
    for _ in range(5):
        records.add(TurnMeasurement(KEY, True, "idle", 100, 1.0, 5.0))
    assert records.turns("1-a", "f16", "cpu", verifies=True) == {"idle": 0.05}


def test_a_line_cut_short_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    records = Records(path)
    records.add(Measurement(KEY, 100, 110))
    path.write_bytes(path.read_bytes() + b'{"key": {"mod\n')
    assert records.find(KEY) is not None


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    Records(blocked / "memory.jsonl").add(Measurement(KEY, 100, 110))


def test_a_file_keeps_its_identity_when_it_is_moved(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gguf", tmp_path / "b.gguf"
    first.write_bytes(b"weights")
    second.write_bytes(b"weights")
    assert identity(first) == identity(second)
    second.write_bytes(b"others!")
    assert identity(first) != identity(second)
