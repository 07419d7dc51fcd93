"""What a fault is: a function that does something to an arena, and where it can be done."""

from collections.abc import Callable
from dataclasses import dataclass

from faults.arena import Arena
from faults.databases import Database

catalogue: dict[str, "Fault"] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``needs_server``: only on the kit's own PostgreSQL, because it stops it or changes roles and settings of it."""

    name: str
    what: str
    happen: Callable[[Arena], None]
    vendors: tuple[str, ...]
    needs_server: bool

    def obstacle(self, database: Database) -> str | None:
        if database.vendor not in self.vendors:
            return f"it does not apply to {database.vendor}"
        if self.needs_server and database.server is None:
            return "it needs a PostgreSQL of the kit's own: run it without DATABASE_URL"
        return None


class CannotHappen(Exception):
    """Raised by a fault that lacks something on this machine; it is reported as skipped, with the reason."""


def fault(*vendors: str, needs_server: bool = False) -> Callable[[Callable[[Arena], None]], Callable[[Arena], None]]:
    """Enter the function below in the catalogue under its name. Its docstring says what is done."""

    def enter(happen: Callable[[Arena], None]) -> Callable[[Arena], None]:
        what = (happen.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        catalogue[happen.__name__] = Fault(
            name=happen.__name__, what=what, happen=happen, vendors=vendors, needs_server=needs_server
        )
        return happen

    return enter
