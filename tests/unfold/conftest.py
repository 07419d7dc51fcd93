"""Run by ``tests/admin/test_unfold.py`` in a process with ``tests.unfold_settings``; else nothing here is collected."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from testproject.shop.lifelike import Day
from tests.browser.conftest import browser  # noqa: F401
from tests.browser.pages import every_page, start_an_operation

if "unfold" not in settings.INSTALLED_APPS:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def boss(transactional_db):
    return User.objects.create_superuser("boss", password="pass")


@pytest.fixture
def pages(transactional_db):
    """Name to path of each page, with something on it."""
    Day(share=0.1).run()
    start_an_operation()
    return dict(every_page())
