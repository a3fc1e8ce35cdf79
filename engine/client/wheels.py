"""How to get the llama.cpp build that a machine needs.

PyPI has llama-cpp-python as source only; wheels are on its maintainer's index, one address a
backend. A version that the index lacks is silently compiled for the processor unless pip is told
to take nothing but wheels.
"""

from __future__ import annotations

_INDEX = "https://abetlen.github.io/llama-cpp-python/whl/"
_CUDA = ((13, 2), (13, 0), (12, 5), (12, 4), (12, 3), (12, 2), (12, 1), (11, 8))
"""Versions of CUDA for which the index has wheels."""
_CUDA_13_NEEDS = (7, 5)


def cuda_wheel(cuda: tuple[int, int] | None, capability: tuple[int, int] | None) -> str | None:
    """Name of the wheel's index for a driver and a GPU, `cu124` for instance.

    Args:
        cuda: newest version that the driver runs.
        capability: compute capability of the GPU; CUDA 13 has dropped those below 7.5.
    """
    for version in _CUDA:
        too_old = version[0] >= 13 and capability is not None and capability < _CUDA_13_NEEDS
        if cuda is not None and version <= cuda and not too_old:
            return f"cu{version[0]}{version[1]}"
    return None


def install_command(wheel: str, version: str) -> str:
    """The command that replaces the installed build by another of the same version."""
    return (
        "python -m pip install --force-reinstall --no-deps --only-binary llama-cpp-python "
        f"--extra-index-url {_INDEX}{wheel} llama-cpp-python=={version}"
    )
