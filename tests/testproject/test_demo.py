"""``manage.py demo`` as users run it, and whether its checks would notice."""

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management.base import CommandError

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
ON_POSTGRESQL = os.environ["TEST_DATABASE"] == "postgresql"
OURS = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")
DATABASE = f"demo_{os.getpid()}"


@dataclass
class Demo:
    """A demo that has run. ``url``: its database, None for the demo's own."""

    var: Path
    url: str | None
    result: subprocess.CompletedProcess[str] | None = None

    def run(self, *arguments):
        return subprocess.run(
            [sys.executable, str(MANAGE), "demo", *arguments],
            check=False,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )

    def _environment(self):
        theirs = {name: value for name, value in os.environ.items() if name not in OURS}
        database = {"DATABASE_URL": self.url} if self.url else {}
        return theirs | database | {"VAR_DIR": str(self.var), "PYTHONWARNINGS": "error"}

    @property
    def mails(self):
        return sorted((self.var / "demo" / "mail").iterdir())

    @property
    def invoices(self):
        return sorted((self.var / "demo" / "invoices").iterdir())

    def execute(self, sql):
        connect = psycopg.connect(self.url) if self.url else sqlite3.connect(self.var / "demo.sqlite3")
        with closing(connect) as connection:
            connection.execute(sql)
            connection.commit()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run once; the tests put back what they change."""
    with database_of_its_own() as url:
        demo = Demo(var=tmp_path_factory.mktemp("var"), url=url)
        demo.result = demo.run()
        yield demo


@contextmanager
def database_of_its_own():
    if not ON_POSTGRESQL:
        yield None
        return
    server = urlsplit(os.environ["DATABASE_URL"])
    with closing(psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        try:
            yield server._replace(path=f"/{DATABASE}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def test_the_demo_goes_well(demo):
    assert demo.result.returncode == 0, demo.result.stdout + demo.result.stderr
    assert "checks passed." in demo.result.stdout
    assert demo.result.stderr == ""


def test_it_shows_what_became_of_each_job_type(demo):
    rows = dict(line.split(maxsplit=1) for line in demo.result.stdout.splitlines() if line.startswith("  shop."))
    assert rows["shop.sync_to_erp"].split() == ["bulk", "4", ".", ".", "4", ".", "8", "."]
    assert rows["shop.ask_for_review"].split() == ["bulk", "15", "14", "1", ".", ".", ".", "."]


@pytest.mark.skipif(not ON_POSTGRESQL, reason="on SQLite the demo starts with an empty database")
def test_it_can_be_played_again_where_it_was_played_before(demo):
    again = demo.run()
    assert again.returncode == 0, again.stdout + again.stderr


def test_a_lost_mail_is_noticed_and_named(demo):
    mail = next(file for file in demo.mails if b"X-Shop-Mail: welcome" in file.read_bytes())
    content = mail.read_bytes()
    mail.unlink()
    checked = demo.run("--check")
    mail.write_bytes(content)
    assert_noticed(checked, r"welcome mail to \w+@example.com: expected 1, found 0")


def test_a_lost_job_is_noticed_and_named(demo):
    hide = "UPDATE django_jobs_job_history SET tenant = '{}' WHERE type = 'shop.report_stock'"
    demo.execute(hide.format("elsewhere"))
    checked = demo.run("--check")
    demo.execute(hide.format("demo-north"))
    assert_noticed(checked, r"job shop.report_stock [\w-]+: expected 1, found 0")


def test_a_broken_invoice_is_noticed_and_named(demo):
    invoice = demo.invoices[0]
    content = invoice.read_bytes()
    invoice.write_bytes(content[:100])
    checked = demo.run("--check")
    invoice.write_bytes(content)
    assert_noticed(checked, f"{invoice.name} is no complete PDF")


def assert_noticed(checked, problem):
    assert checked.returncode == 1
    assert re.search(problem, checked.stdout), checked.stdout
    assert "checks failed" in checked.stderr


def test_without_a_demo_there_is_nothing_to_check(tmp_path):
    checked = Demo(var=tmp_path, url=None).run("--check")
    assert checked.returncode == 1
    assert "There was no demo yet" in checked.stderr


def test_a_database_that_does_not_answer_is_named(tmp_path):
    failed = Demo(var=tmp_path, url="postgres://nobody@127.0.0.1:1/nothing").run()
    assert failed.returncode == 1
    assert "The database 'nothing' of DATABASE_URL does not answer" in failed.stderr


@pytest.mark.usefixtures("shop")
def test_it_refuses_a_database_in_which_jobs_of_others_wait():
    from testproject.shop.demo import cast
    from testproject.shop.jobs import send_welcome_mail

    send_welcome_mail.using(tenant="somebody").enqueue(customer_id=1)
    with pytest.raises(CommandError, match="1 unfinished job that is not the demo's"):
        cast.leave()


@pytest.mark.usefixtures("shop")
def test_it_removes_nothing_of_other_stores():
    from testproject.shop.demo import cast
    from testproject.shop.models import Customer

    for store in ("north", "demo-north"):
        Customer.objects.create(store=store, name="Ada", email="ada@example.com")
    cast.leave()
    assert Customer.objects.get().store == "north"
