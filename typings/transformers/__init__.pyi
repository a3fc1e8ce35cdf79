"""Nothing of transformers is analysed: it is so large that doing so takes longer than all else."""

from typing import Any

def __getattr__(name: str) -> Any: ...
