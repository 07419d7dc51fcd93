"""How a process is, as it tells its supervisor, a probe, or ``jobhealth``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """``live``: it turns over by itself, whatever the database does. ``ready``: the jobs database answers as well."""

    worker: str
    live: bool
    ready: bool
    running: int
    processes: int = 1

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
