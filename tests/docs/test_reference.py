"""The reference pages are what the code generates. To mend a failure: ``python docs/generate.py``."""

import importlib.util
import re
from pathlib import Path

import pytest

import django_jobs
from django_jobs.conf import Settings

DOCS = Path(__file__).parent.parent.parent / "docs"


def load_pages():
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load_pages()


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_reference_page_is_what_the_code_generates(name):
    committed = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert committed == pages.PAGES[name](), "run: python docs/generate.py"


def test_every_setting_has_a_description():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("name", django_jobs.__all__)
def test_every_public_name_is_on_the_api_page(name):
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert f"`from django_jobs import {name}`" in page


@pytest.mark.parametrize("name", django_jobs.__all__)
def test_every_public_name_is_documented_where_it_is_defined(name):
    assert (getattr(django_jobs, name).__doc__ or "").strip()


def test_the_guide_shows_the_windows_that_the_default_policy_has():
    guide = (DOCS / "guides" / "retries.md").read_text(encoding="utf-8")
    assert pages.retry_windows() in guide


def test_every_system_check_is_on_its_page():
    in_code = re.findall(r'id="(django_jobs\.[EW]\d+)"', (Path(django_jobs.__file__).parent / "checks.py").read_text())
    on_page = re.findall(r"^\| `(django_jobs\.[EW]\d+)`", (DOCS / "reference" / "checks.md").read_text(), re.MULTILINE)
    assert on_page == sorted(set(in_code))
