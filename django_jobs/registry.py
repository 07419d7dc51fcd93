"""The register of job types: name to handler. Nothing is ever imported because a row or a request names it."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from .conf import did_you_mean
from .exceptions import ConfigurationError, UnknownJobType
from .policy import JobType


class Registry:
    """Names and aliases are one namespace; registering a name twice is an error unless it is the same function."""

    def __init__(self) -> None:
        self._by_name: dict[str, JobType] = {}

    def register(self, job_type: JobType) -> None:
        for name in (job_type.name, *job_type.aliases):
            holder = self._by_name.get(name)
            if holder is not None and _origin(holder) != _origin(job_type):
                raise ConfigurationError(
                    f"Two handlers are registered as {name!r}: {_origin(holder)} and {_origin(job_type)}. Rename one."
                )
        for name in (job_type.name, *job_type.aliases):
            self._by_name[name] = job_type

    def find(self, name: str) -> JobType | None:
        return self._by_name.get(name)

    def get(self, name: str) -> JobType:
        """Raises UnknownJobType, naming the nearest one."""
        found = self._by_name.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownJobType(
                _(
                    "No handler is registered as %(name)r.%(hint)s Handlers are found in the jobs.py of each installed "
                    "app; check that the app is in INSTALLED_APPS and the name is spelt right."
                )
                % {"name": name, "hint": did_you_mean(name, self._by_name)}
            )
        return found

    def names(self) -> list[str]:
        """Every name that a job may bear, aliases included."""
        return list(self._by_name)

    def __iter__(self) -> Iterator[JobType]:
        return iter({id(t): t for t in self._by_name.values()}.values())


def _origin(job_type: JobType) -> str:
    return job_type.signature.handler


registry = Registry()
