"""What was written by an older version is read by a newer one."""

from engine.protocol import Memory, ModelMemory, decode_event, encode


def test_a_log_from_before_the_bytes_of_each_model_were_told_is_still_read() -> None:
    line = (
        b'{"type":"memory","seq":3,"at":1.5,"process":90000000,"generator_cells":10,'
        b'"generator_capacity":100,"verifier_cells":5,"verifier_capacity":50}'
    )
    event = decode_event(line)
    assert isinstance(event, Memory)
    assert event.generator_capacity == 100
    assert event.budget == 0
    assert event.generator == ModelMemory()


def test_the_bytes_of_each_model_survive_the_way_through_a_log() -> None:
    event = Memory(
        process=1,
        generator_cells=2,
        generator_capacity=3,
        device="RAM",
        budget=1 << 31,
        generator=ModelMemory(weights=7, cache_used=1, cache_free=2, buffers=3),
        verifier=ModelMemory(offloaded=9),
    )
    assert decode_event(encode(event)) == event
