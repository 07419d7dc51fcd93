"""Those who are told: the log, the admins, a webhook, a function. Secrets stay where they are."""

import json
import logging
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import django
import pytest
from django.core import mail
from django.test import override_settings

from django_jobs.conf import get_settings
from django_jobs.exceptions import ConfigurationError
from django_jobs.maintenance.notifiers import (
    AlertEvent,
    FunctionNotifier,
    LogNotifier,
    MailNotifier,
    NotDelivered,
    WebhookNotifier,
    notifier,
)

SECRET = "T000-B000-verysecret"
ADA = "ada@example.com" if django.VERSION >= (6, 0) else ("Ada", "ada@example.com")


def event(**changes):
    values = {
        "kind": "opened",
        "id": "01a2",
        "condition": "oldest_job",
        "subject": "queue bulk",
        "severity": "critical",
        "summary": "The oldest job has waited for 20 min.",
        "details": {"waiting_since": "08:00"},
        "opened_at": datetime(2026, 11, 29, 8, tzinfo=UTC),
        "resolved_at": None,
    }
    return AlertEvent(**values | changes)


@pytest.fixture
def webhook():
    """A server on this machine; ``requests`` holds what it was sent, ``answer`` is what it says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(server.answer)
            if server.answer == 302:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answer = [], 200
    server.address = f"http://127.0.0.1:{server.server_port}/{SECRET}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_gets_what_slack_takes(webhook):
    WebhookNotifier(webhook.address).tell(event(subject="queue <!channel> & co"))
    ((path, content_type, body),) = webhook.requests
    assert (path, content_type) == (f"/{SECRET}", "application/json")
    assert body == {
        "text": "*[CRITICAL] oldest_job: queue &lt;!channel&gt; &amp; co*\nThe oldest job has waited for 20 min."
    }


@pytest.mark.parametrize("answer", [302, 404, 500])
def test_a_webhook_that_refuses_or_points_elsewhere_was_not_told(webhook, answer):
    webhook.answer = answer
    with pytest.raises(NotDelivered, match=f"answered {answer}") as caught:
        WebhookNotifier(webhook.address).tell(event())
    assert len(webhook.requests) == 1
    assert SECRET not in str(caught.value)


def test_an_error_about_a_webhook_does_not_give_its_address_away(webhook):
    webhook.server_close()
    with pytest.raises(NotDelivered) as caught:
        WebhookNotifier(webhook.address).tell(event())
    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert caught.value.__suppress_context__


def test_the_name_of_a_webhook_tells_two_apart_and_gives_neither_away():
    one, two = (WebhookNotifier(f"https://hooks.slack.com/services/{SECRET}{n}") for n in "12")
    assert one.name != two.name
    assert one.name.startswith("webhook hooks.slack.com ")
    assert SECRET not in one.name


def test_the_settings_do_not_show_a_webhook_when_they_are_printed():
    with override_settings(DJANGO_JOBS={"NOTIFIERS": [f"https://hooks.slack.com/{SECRET}"]}):
        assert SECRET not in repr(get_settings())


def test_the_admins_get_a_mail_with_what_is_to_be_done():
    with override_settings(ADMINS=[ADA]):
        MailNotifier().tell(event(subject="two\nlines", details={"sql": "CREATE TABLE …;"}))
    (message,) = mail.outbox
    assert message.subject.endswith("[CRITICAL] oldest_job: two lines")
    assert "sql: CREATE TABLE …;" in message.body
    assert "Since 2026-11-29 08:00:00 UTC" in message.body


@pytest.mark.parametrize(
    ("changes", "level", "word"),
    [
        ({"severity": "warning"}, logging.WARNING, "[WARNING]"),
        ({"severity": "critical"}, logging.CRITICAL, "[CRITICAL]"),
        ({"kind": "resolved"}, logging.INFO, "[RESOLVED]"),
    ],
)
def test_the_log_has_a_line_at_the_level_of_the_alert(changes, level, word, caplog):
    caplog.set_level(logging.INFO, "django_jobs.alerts")
    LogNotifier().tell(event(**changes))
    ((_, logged, text),) = caplog.record_tuples
    assert logged == level
    assert text == f"{word} oldest_job: queue bulk: The oldest job has waited for 20 min."


told = []


def remember(event):
    told.append(event)


def test_a_function_of_the_project_is_called():
    FunctionNotifier(f"{__name__}.remember").tell(event())
    assert told.pop() == event()


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("log", LogNotifier),
        ("mail", MailNotifier),
        ("https://hooks.slack.com/services/x", WebhookNotifier),
        ("shop.alerts.page", FunctionNotifier),
    ],
)
def test_an_entry_says_what_it_is(entry, kind):
    assert isinstance(notifier(entry), kind)


@pytest.mark.parametrize(
    "entry", [f"http://hooks.slack.com/{SECRET}", f"ftp://x/{SECRET}", "https://", "slack", "a.b-c"]
)
def test_another_entry_is_refused_without_being_repeated(entry):
    with override_settings(DJANGO_JOBS={"NOTIFIERS": ["log", entry]}):
        with pytest.raises(ConfigurationError, match="NOTIFIERS: entry 2 is neither") as caught:
            get_settings()
        assert SECRET not in str(caught.value)
