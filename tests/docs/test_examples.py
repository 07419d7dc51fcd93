"""The code in the README and in the tutorial does what they say."""

import ast
import os
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.examples import Block, Project, blocks

ROOT = Path(__file__).parent.parent.parent

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]

on_sqlite = pytest.mark.skipif(os.environ["TEST_DATABASE"] != "sqlite", reason="the examples use SQLite")


def imports_in(page):
    """(module, name) of everything of ours that a page's Python blocks import."""
    for block in blocks(page):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "django_jobs":
                    yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_python_can_be_parsed_and_imports_what_there_is(page):
    missing = [name for module, name in imports_in(page) if not hasattr(import_module(module), name)]
    assert missing == []


def run_to_the_end(page, project):
    for number, block in enumerate(blocks(page), start=1):
        try:
            project.run(block)
        except AssertionError as error:
            pytest.fail(f"{page.name}, block {number}:\n{block.text}\n{error}", pytrace=False)


def new_project(folder, settings):
    project = Project(folder)
    project.command("django-admin startproject mysite .")
    project.command("python manage.py startapp shop")
    project.run_python(f"# at the end of mysite/settings.py\n{settings}\n")
    return project


@on_sqlite
def test_the_tutorial_runs_from_the_first_block_to_the_last(tmp_path):
    run_to_the_end(DOCS / "tutorial.md", Project(tmp_path))


SIGN_UP = """
from django.core import mail
from django.core.management import call_command
from django.test import RequestFactory
from django.test.utils import setup_test_environment

setup_test_environment()
from shop.views import sign_up

response = sign_up(RequestFactory().post("/", {"name": "ada", "email": "ada@example.com"}))
assert response.status_code == 201
call_command("runjobworker", "--drain", verbosity=0)
assert [m.to for m in mail.outbox] == [["ada@example.com"]]
"""


@on_sqlite
def test_the_example_in_the_readme_sends_a_mail(tmp_path):
    project = new_project(tmp_path, "INSTALLED_APPS += ['shop']")
    for block in blocks(ROOT / "README.md"):
        if block.language == "python":
            project.run(block)
    project.command("python manage.py migrate")
    project.run(Block("python", SIGN_UP))


@on_sqlite
def test_the_examples_of_the_guide_to_schedules_do_what_they_say(tmp_path):
    project = new_project(tmp_path, "INSTALLED_APPS += ['django_jobs', 'shop']")
    project.command("python manage.py migrate")
    run_to_the_end(DOCS / "guides" / "schedules.md", project)
    project.command("python manage.py check")
    project.command("python manage.py syncschedules")


DOUBLE = """\
# shop/jobs.py
from django_jobs import job


@job("shop.double")
def double(number: int) -> int:
    return 2 * number
"""


@on_sqlite
def test_the_tests_of_the_testing_guide_pass(tmp_path):
    project = new_project(tmp_path, "INSTALLED_APPS += ['django_jobs', 'shop']")
    project.run_python(DOUBLE)
    run_to_the_end(DOCS / "guides" / "testing.md", project)
    project.command("python -m django test")


@on_sqlite
def test_the_guide_to_daylight_saving_shows_what_happens(tmp_path):
    run_to_the_end(DOCS / "guides" / "daylight-saving.md", new_project(tmp_path, "INSTALLED_APPS += ['django_jobs']"))
