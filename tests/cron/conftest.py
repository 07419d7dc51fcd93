import zoneinfo

import pytest


@pytest.fixture(autouse=True, scope="module")
def _pinned_zone_data():
    """The zone data of the package tzdata, whose version is pinned, and not the system's."""
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()
