"""Whether what was asked for is what happened. Each check says in its docstring what holds if it finds no problem."""

from . import effects, jobs
from .verdict import Verdict, verdicts

__all__ = ["Verdict", "effects", "jobs", "verdicts"]
