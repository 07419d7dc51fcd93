"""Notifiers that hang: the others are told all the same, and they themselves are told again."""

import logging
import socket
import threading
from contextlib import closing, contextmanager
from datetime import timedelta

import django
import pytest
from django.core import mail
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_jobs.maintenance import teller as teller_module
from django_jobs.maintenance.notifiers import notifier
from django_jobs.maintenance.notifying import Notifying
from django_jobs.maintenance.teller import MOST_HANGING
from django_jobs.models import Alert
from tests.maintenance.test_notifiers import ADA, webhook
from tests.operations.support import committing
from tests.waiting import wait_for

pytestmark = committing
__all__ = ["webhook"]

SMTP = "django.core.mail.backends.smtp.EmailBackend"


class Hang:
    """``begun``: the notifier is in the call that does not come back before ``over``."""

    def __init__(self):
        self.entry = ""
        self.begun, self.over = threading.Event(), threading.Event()

    def is_met_by(self, call):
        return call.name.endswith(notifier(self.entry).name) and self.begun.is_set()

    def wait(self):
        self.begun.set()
        self.over.wait(60)


@pytest.fixture
def hang(monkeypatch):
    """Instead of TELL_SECONDS it is waited until the call is over or hangs for certain."""
    hang = Hang()

    def join(call, timeout):
        wait_for(lambda: not call.is_alive() or hang.is_met_by(call))

    monkeypatch.setattr(teller_module._Call, "join", join)
    yield hang
    hang.over.set()


called = []


@pytest.fixture(autouse=True)
def nobody_was_called():
    called.clear()


def speak(event):
    called.append(event.subject)


FUNCTION = f"{__name__}.speak"
HANGING_FUNCTION = f"{__name__}.hang_up"


@contextmanager
def a_function_that_never_returns(hang, monkeypatch):
    monkeypatch.setitem(globals(), "hang_up", lambda event: hang.wait())
    hang.entry = HANGING_FUNCTION
    yield


@contextmanager
def a_mail_server_that_stays_silent(hang, monkeypatch):
    with serving(hang, lambda connection: hang.wait()) as port, override_settings(**smtp(port)):
        hang.entry = "mail"
        yield


def smtp(port):
    if django.VERSION >= (6, 1):
        return {"MAILERS": {"default": {"BACKEND": SMTP, "OPTIONS": {"host": "127.0.0.1", "port": port}}}}
    return {"EMAIL_BACKEND": SMTP, "EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": port}


@contextmanager
def a_webhook_that_dribbles(hang, monkeypatch):
    """Each byte comes in time, and the answer never ends."""

    def dribble(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        hang.begun.set()
        while not hang.over.wait(0.01):
            connection.sendall(b"w")

    with serving(hang, dribble) as port:
        hang.entry = f"http://127.0.0.1:{port}/dribble"
        yield


@contextmanager
def serving(hang, answer):
    """One connection is taken and answered so."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(30)

    def serve():
        connection, _ = server.accept()
        with connection:
            answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    with closing(server):
        yield server.getsockname()[1]
        hang.over.set()
        thread.join()


def alert(subject="queue bulk"):
    return Alert.objects.create(condition="trouble", subject=subject, severity="error", notify_at=timezone.now())


def notifying(*entries):
    return Notifying("default", [notifier(entry) for entry in entries])


def again(notifying):
    """A later turn: all pauses are over."""
    for row in Alert.objects.all():
        for record in row.notified.values():
            record.pop("again_at", None)
        row.notify_at = timezone.now() - timedelta(minutes=1)
        row.save()
    notifying.run_once(None)


def record_of(entry):
    return Alert.objects.get().notified[notifier(entry).name]


@pytest.mark.parametrize(
    "trouble", [a_function_that_never_returns, a_mail_server_that_stays_silent, a_webhook_that_dribbles]
)
def test_one_that_hangs_keeps_no_other_from_being_told(trouble, hang, webhook, monkeypatch, caplog):
    alert()
    with override_settings(ADMINS=[ADA]), trouble(hang, monkeypatch):
        others = [entry for entry in ("log", "mail", webhook.address, FUNCTION) if entry != hang.entry]
        notifying(hang.entry, *others).run_once(None)
        assert "has not come back" in record_of(hang.entry)["error"]
        assert [record_of(entry)["told"] for entry in others] == ["opened"] * len(others)
    assert ("django_jobs.alerts", logging.ERROR, "[ERROR] trouble: queue bulk: ") in caplog.record_tuples
    assert (len(webhook.requests), called) == (1, ["queue bulk"])
    assert len(mail.outbox) == (hang.entry != "mail")


def test_one_that_hung_is_told_by_the_next_try_although_its_first_call_still_hangs(hang, monkeypatch):
    def hang_once(event):
        called.append(event.subject)
        if len(called) == 1:
            hang.wait()

    monkeypatch.setitem(globals(), "hang_up", hang_once)
    hang.entry = HANGING_FUNCTION
    alert()
    service = notifying(HANGING_FUNCTION)
    service.run_once(None)
    assert record_of(HANGING_FUNCTION)["failures"] == 1
    hang.begun.clear()
    again(service)
    assert (record_of(HANGING_FUNCTION)["told"], called) == ("opened", ["queue bulk"] * 2)


def test_only_a_few_calls_of_one_notifier_hang_and_it_is_told_again_when_they_have_ended(hang, monkeypatch):
    with a_function_that_never_returns(hang, monkeypatch):
        service = notifying(HANGING_FUNCTION, FUNCTION)
        alert()
        for _ in range(MOST_HANGING + 2):
            again(service)
        assert len(hanging_calls()) == MOST_HANGING
        assert "3 earlier calls have not come back" in record_of(HANGING_FUNCTION)["error"]
        hang.over.set()
        wait_for(lambda: not hanging_calls())
        alert("another")
        again(service)
    assert called == ["queue bulk", "another"]
    assert {row.notified[HANGING_FUNCTION]["told"] for row in Alert.objects.all()} == {"opened"}


def hanging_calls():
    return [thread for thread in threading.enumerate() if thread.name.endswith(HANGING_FUNCTION)]


def test_what_a_slow_one_has_said_after_all_is_not_said_twice(hang, monkeypatch):
    def slow(event):
        called.append(event.subject)
        hang.wait()

    monkeypatch.setitem(globals(), "hang_up", slow)
    hang.entry = HANGING_FUNCTION
    alert()
    service = notifying(HANGING_FUNCTION)
    service.run_once(None)
    hang.over.set()
    wait_for(lambda: not hanging_calls())
    again(service)
    assert (record_of(HANGING_FUNCTION)["told"], called) == ("opened", ["queue bulk"])


def test_one_that_asks_the_process_to_end_has_failed_like_others(hang, monkeypatch):
    def leave(event):
        raise SystemExit(3)

    monkeypatch.setitem(globals(), "hang_up", leave)
    hang.entry = HANGING_FUNCTION
    alert()
    notifying(HANGING_FUNCTION, FUNCTION).run_once(None)
    assert record_of(HANGING_FUNCTION)["error"] == "SystemExit: 3"
    assert called == ["queue bulk"]


def test_a_function_may_ask_the_database_and_leaves_no_connection_open(hang, monkeypatch):
    def ask(event):
        called.append(Alert.objects.count())
        called.append(connections["default"])

    monkeypatch.setitem(globals(), "hang_up", ask)
    hang.entry = HANGING_FUNCTION
    alert()
    notifying(HANGING_FUNCTION).run_once(None)
    count, connection = called
    assert (count, connection.connection) == (1, None)
