"""FastTTS's split of memory between two caches (section 4 of the paper), to compare with.

Its verifier reads whole paths and keeps nothing: for each number of paths that it reads at once,
the generator takes all that is left; the least time of one reading and writing of all paths wins.
"""

from __future__ import annotations

from engine.memory.roofline import Load, Speed, Split, best


def split(
    paths: int,
    length: int,
    generator: Load,
    verifier: Load,
    speed: Speed,
    room: int,
    path: tuple[int, int],
) -> Split | None:
    """The fastest split of `room` bytes for paths of `length` tokens.

    Args:
        path: bytes that a path takes in the generator's cache and in the verifier's.

    Returns:
        None if there is no room for one path in each.
    """
    found = []
    for verified in range(1, paths + 1):
        written = min(paths, (room - verified * path[1]) // path[0])
        if written < 1:
            break
        reading = -(-paths // verified) * verifier.prefill(speed, verified, length)
        step = generator.decode(speed, written, length / 2)
        found.append(Split(verified, written, reading + -(-paths // written) * length * step))
    return best(found) if found else None
