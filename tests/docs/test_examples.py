"""The code in the README and in the tutorial does what they say."""

import os
from pathlib import Path

import pytest

from tests.docs.examples import Block, Project, blocks

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.skipif(os.environ["TEST_DATABASE"] != "sqlite", reason="the examples use SQLite")


def run_to_the_end(page, project):
    for number, block in enumerate(blocks(page), start=1):
        try:
            project.run(block)
        except AssertionError as error:
            pytest.fail(f"{page.name}, block {number}:\n{block.text}\n{error}", pytrace=False)


def test_the_tutorial_runs_from_the_first_block_to_the_last(tmp_path):
    run_to_the_end(ROOT / "docs" / "tutorial.md", Project(tmp_path))


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


def test_the_example_in_the_readme_sends_a_mail(tmp_path):
    project = Project(tmp_path)
    project.command("django-admin startproject mysite .")
    project.command("python manage.py startapp shop")
    project.run_python("# at the end of mysite/settings.py\nINSTALLED_APPS += ['shop']\n")
    for block in blocks(ROOT / "README.md"):
        if block.language == "python":
            project.run(block)
    project.command("python manage.py migrate")
    project.run(Block("python", SIGN_UP))
