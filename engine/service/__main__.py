"""`python -m engine.service`: the worker process, as the client starts it."""

from engine.service.worker import Solver, main


def make_solver() -> Solver:
    # Importing it takes seconds. The client hears from the worker before that.
    from engine.service.solver import Solver

    return Solver()


if __name__ == "__main__":
    main(make_solver)
