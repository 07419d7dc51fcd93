"""What the demo asked of the shop, kept in a file so that it can be compared with the facts again later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self

from django.conf import settings

from testproject.shop.checkout import OrderedJob

Outcome = Literal["placed", "out of stock", "declined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJob:
    """A job somebody enqueued. ``duplicate``: the key made it an earlier one."""

    type: str
    id: str
    duplicate: bool = False

    @classmethod
    def of(cls, ordered: OrderedJob) -> Self:
        return cls(type=ordered.type, id=str(ordered.job.id), duplicate=ordered.job.duplicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One visit to the checkout. ``number``: the order's. ``undone``: jobs that a savepoint took back."""

    customer: str
    number: str
    outcome: Outcome
    jobs: list[AskedJob]
    undone: list[AskedJob]
    fails_once: bool
    cancelled: bool
    endpoint_is_gone: bool

    def has(self, type_name: str) -> bool:
        return any(job.type == type_name for job in self.jobs)


@dataclass(slots=True, kw_only=True)
class Story:
    """``stock``: pieces on each shelf before the first order. ``worker``: the id of the one that did the work."""

    review_delay: float
    stock: dict[str, int]
    scenes: list[Scene] = field(default_factory=list)
    other_jobs: list[AskedJob] = field(default_factory=list)
    worker: str = ""

    @property
    def placed(self) -> list[Scene]:
        return [scene for scene in self.scenes if scene.outcome == "placed"]

    @property
    def rolled_back(self) -> list[Scene]:
        return [scene for scene in self.scenes if scene.outcome != "placed"]

    def jobs(self) -> Iterator[AskedJob]:
        """Every job that must exist, once."""
        for scene in self.placed:
            yield from (job for job in scene.jobs if not job.duplicate)
        yield from (job for job in self.other_jobs if not job.duplicate)

    def taken_back(self) -> Iterator[AskedJob]:
        """Every job that must not exist."""
        for scene in self.rolled_back:
            yield from (job for job in scene.jobs if not job.duplicate)
        for scene in self.scenes:
            yield from scene.undone

    def save(self) -> None:
        _file().write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls) -> Self:
        """Raises FileNotFoundError if there was no demo."""
        told = json.loads(_file().read_text())
        scenes = [
            Scene(**scene | {part: [AskedJob(**job) for job in scene[part]] for part in ("jobs", "undone")})
            for scene in told.pop("scenes")
        ]
        others = [AskedJob(**job) for job in told.pop("other_jobs")]
        return cls(**told, scenes=scenes, other_jobs=others)


def _file() -> Path:
    path: Path = settings.SHOP_DIR / "story.json"
    return path
