"""The one way into the engine: solve requests in a process of their own, and read run logs."""

from engine.client.local import LocalEngine
from engine.runlog import read_run

__all__ = ["LocalEngine", "read_run"]
