"""What a UUIDv7 says, read without the code that made it."""

from datetime import UTC, datetime
from uuid import UUID


def instant_of(id: UUID) -> datetime:
    assert id.version == 7, f"{id} is not a UUIDv7"
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)
