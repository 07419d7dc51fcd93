"""The test project's shop, installed for the tests of this folder only."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command
from django.test import modify_settings

from django_jobs.operations.declared_schedules import declared_schedules


@pytest.fixture(scope="package")
def installed_shop(django_db_setup, django_db_blocker):
    with modify_settings(INSTALLED_APPS={"append": ["testproject.shop"]}), django_db_blocker.unblock():
        call_command("migrate", "shop", verbosity=0)
        declared = dict(declared_schedules._specs)
        yield
        declared_schedules._specs = declared
        for model in filter(admin.site.is_registered, apps.get_app_config("shop").get_models()):
            admin.site.unregister(model)
        call_command("migrate", "shop", "zero", verbosity=0)


@pytest.fixture
def shop(installed_shop, db, settings, tmp_path):
    settings.SHOP_DIR = tmp_path
    settings.SHOP_PARTNER_URL = "http://127.0.0.1:1"
    settings.SHOP_REVIEW_DELAY = timedelta(days=14)
    settings.SHOP_FAIL_FIRST_ATTEMPT = []
