from tests.engine.hub.fixtures import hub

__all__ = ["hub"]
