"""Alerts: one for each thing that is wrong, from when it is seen until it has been calm for a while."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.db.models import F
from django.utils import timezone

from django_jobs import Actor, acknowledge_alert, alerts, resolve_alert
from django_jobs.conf import CONDITIONS, get_settings
from django_jobs.exceptions import AlertNotFound, InvalidOption
from django_jobs.maintenance.conditions import Finding, all_conditions
from django_jobs.maintenance.notifying import Notifying
from django_jobs.maintenance.watcher import MOST_FINDINGS, REST, Watcher
from django_jobs.models import Alert, Severity
from tests.operations.support import committing

pytestmark = committing

CALM = timedelta(minutes=5)


class Told:
    name = "test"

    def __init__(self):
        self.events = []
        self.error = None

    def tell(self, event):
        if self.error:
            raise self.error
        self.events.append((event.kind, event.subject))


def telling(*notifiers):
    """A watcher after whose look the notifiers are told."""
    notifying = Notifying("default", notifiers)
    return Watcher(get_settings(), lambda: notifying.run_once(None))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def found():
    """What the one condition of the watcher finds."""
    return []


@pytest.fixture
def watch(told, found):
    watcher = telling(told)
    watcher._conditions = {"trouble": lambda view: list(found)}
    return lambda: watcher.run_once(None)


def trouble(subject="queue bulk", summary="It stands still.", **more):
    return Finding(subject=subject, summary=summary, **more)


def let_time_pass(by):
    for name in ("opened_at", "last_seen_at", "notify_at", "resolved_at"):
        Alert.objects.filter(**{f"{name}__isnull": False}).update(**{name: F(name) - by})


def test_what_holds_twice_is_one_alert_and_one_message(watch, found, told):
    found.append(trouble())
    assert watch() == 1
    found[0] = trouble(summary="It still stands still.", severity=Severity.CRITICAL)
    assert watch() == 0
    alert = Alert.objects.get()
    assert (alert.condition, alert.subject, alert.state) == ("trouble", "queue bulk", "open")
    assert (alert.summary, alert.severity) == ("It still stands still.", "critical")
    assert told.events == [("opened", "queue bulk")]


def test_an_alert_is_resolved_when_it_has_been_calm_for_a_while_and_not_before(watch, found, told):
    found.append(trouble())
    watch()
    found.clear()
    watch()
    assert Alert.objects.get().state == "open"
    let_time_pass(CALM)
    watch()
    alert = Alert.objects.get()
    assert (alert.state, alert.resolved_at is not None) == ("resolved", True)
    assert told.events == [("opened", "queue bulk"), ("resolved", "queue bulk")]


def test_what_comes_and_goes_rings_once(watch, found, told):
    for _ in range(4):
        found.append(trouble())
        watch()
        let_time_pass(CALM / 2)
        found.clear()
        watch()
        let_time_pass(CALM / 4)
    assert Alert.objects.count() == 1
    assert told.events == [("opened", "queue bulk")]


def test_what_comes_back_after_it_was_resolved_is_a_new_alert(watch, found, told):
    found.append(trouble())
    watch()
    resolve_alert(Alert.objects.get().pk, actor=Actor(name="ada"))
    watch()
    assert sorted(Alert.objects.values_list("state", flat=True)) == ["open", "resolved"]
    assert told.events.count(("opened", "queue bulk")) == 2


def test_of_a_flood_the_first_are_told_one_by_one_and_the_rest_is_counted(watch, found, told):
    found.extend(trouble(subject=f"{n:03}") for n in range(100))
    watch()
    assert Alert.objects.count() == MOST_FINDINGS + 1
    assert Alert.objects.get(subject=REST).summary == "It holds for 80 more."
    found[:0] = [trouble(subject=f"0{n}") for n in range(5)]
    watch()
    assert Alert.objects.count() == MOST_FINDINGS + 1, "those with an alert keep it"


def test_a_condition_that_fails_stops_no_other_and_resolves_nothing(watch, found, told, caplog):
    found.append(trouble())
    watch()
    let_time_pass(CALM)
    watcher = telling(told)

    def broken(view):
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")

    def bug(view):
        raise RuntimeError("bug")

    watcher._conditions = {"trouble": broken, "bug": bug, "fine": lambda view: [trouble(subject="fine")]}
    watcher.run_once(None)
    assert {alert.condition: alert.state for alert in Alert.objects.all()} == {"trouble": "open", "fine": "open"}
    assert "The condition trouble could not be looked at" in caplog.text
    assert "The condition bug could not be looked at" in caplog.text


def test_two_leaders_open_one_alert(watch, found, told, monkeypatch):
    found.append(trouble())
    other = telling(told)
    monkeypatch.setattr(Watcher, "_record", _as_if_it_had_seen_no_alert(Watcher._record))
    other._conditions = {"trouble": lambda view: list(found)}
    watch()
    other.run_once(None)
    assert Alert.objects.count() == 1
    assert told.events == [("opened", "queue bulk")]


def _as_if_it_had_seen_no_alert(record):
    def blind(self, name, findings, now):
        for finding in findings:
            self._open(name, finding.subject, finding, now)
        return len(findings)

    return blind


def test_long_words_are_cut_not_refused(watch, found):
    found.append(trouble(subject="s" * 1000, summary="t" * 1000))
    watch()
    watch()
    assert (len(Alert.objects.get().subject), len(Alert.objects.get().summary)) == (300, 500)


def test_muted_conditions_are_not_looked_for(settings):
    settings.DJANGO_JOBS = settings.DJANGO_JOBS | {"MUTED_ALERTS": ["queue_trend", "dead_rate"]}
    watcher = telling()
    assert set(CONDITIONS) - set(watcher._conditions) == {"queue_trend", "dead_rate"}


def test_at_rest_the_real_conditions_find_nothing_and_ask_a_bounded_number_of_questions(
    told, django_assert_max_num_queries, caplog
):
    watcher = telling(told)
    assert set(watcher._conditions) == set(CONDITIONS) == set(all_conditions())
    with django_assert_max_num_queries(70):
        watcher.run_once(None)
    assert not Alert.objects.exists()
    assert caplog.records == []


# What an operator does


@pytest.fixture
def alert():
    return Alert.objects.create(condition="trouble", subject="queue bulk", severity="error")


def test_an_acknowledged_alert_is_live_and_nobody_is_told_again(watch, found, told, alert):
    assert acknowledge_alert(alert.pk, actor=Actor(name="ada")) is True
    assert acknowledge_alert(str(alert.pk)) is False
    found.append(trouble())
    watch()
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_by, told.events) == ("acknowledged", "ada", [])
    found.clear()
    let_time_pass(CALM)
    watch()
    alert.refresh_from_db()
    assert alert.state == "resolved"


def test_an_alert_is_resolved_once(alert):
    assert resolve_alert(alert.pk, actor=Actor(name="ada")) is True
    assert resolve_alert(alert.pk) is False
    alert.refresh_from_db()
    assert (alert.state, alert.resolved_by) == ("resolved", "ada")


def test_live_alerts_are_listed_the_newest_first(alert):
    newer = Alert.objects.create(
        condition="trouble", subject="another", severity="error", opened_at=timezone.now() + CALM
    )
    done = Alert.objects.create(condition="trouble", subject="done", severity="error", state="resolved")
    assert list(alerts()) == [newer, alert]
    assert list(alerts(state="resolved")) == [done]
    with pytest.raises(InvalidOption, match="open, acknowledged, resolved"):
        alerts(state="closed")


@pytest.mark.parametrize("act", [acknowledge_alert, resolve_alert])
@pytest.mark.parametrize("id", ["nonsense", None, "00000000-0000-7000-8000-000000000000"])
def test_an_unknown_alert_is_said_to_be_unknown(act, id):
    with pytest.raises(AlertNotFound):
        act(id)


def test_there_is_one_live_alert_of_a_condition_and_subject(alert):
    with pytest.raises(DatabaseError):
        Alert.objects.create(condition="trouble", subject="queue bulk", severity="error")


# Telling


def test_a_notifier_that_fails_is_asked_again_later_and_stops_nobody(watch, found, told, caplog):
    found.append(trouble())
    told.error = RuntimeError("no network")
    watch()
    watch()
    record = Alert.objects.get().notified["test"]
    assert (record["failures"], record["error"]) == (1, "RuntimeError: no network")
    assert caplog.text.count("was not told") == 1, "not before its pause is over"
    told.error = None
    let_time_pass(timedelta(minutes=2))
    forget_pauses()
    watch()
    assert told.events == [("opened", "queue bulk")]
    alert = Alert.objects.get()
    assert (alert.notified["test"]["told"], alert.notify_at) == ("opened", None)


def forget_pauses():
    for alert in Alert.objects.all():
        for record in alert.notified.values():
            record.pop("again_at", None)
        alert.save()


def test_a_notifier_that_fails_keeps_no_other_from_being_told(found):
    broken, fine = Told(), Told()
    broken.name, broken.error, fine.name = "broken", RuntimeError("no"), "fine"
    watcher = telling(broken, fine)
    watcher._conditions = {"trouble": lambda view: [trouble(subject=f"{n}") for n in range(3)]}
    watcher.run_once(None)
    assert len(fine.events) == 3
    records = [alert.notified["broken"] for alert in Alert.objects.all()]
    assert sum(record.get("failures", 0) for record in records) == 1, "it is left alone for the rest of the turn"
    broken.error = None
    forget_pauses()
    Alert.objects.update(notify_at=timezone.now() - CALM)
    watcher.run_once(None)
    assert (len(broken.events), len(fine.events)) == (3, 3)


def test_an_error_that_the_database_could_not_store_stops_nobody(watch, found, told):
    told.error = RuntimeError("bytes \0 and half a \ud83d")
    found.extend([trouble("a"), trouble("b")])
    watch()
    records = [alert.notified["test"] for alert in Alert.objects.order_by("subject")]
    assert sum(record.get("failures", 0) for record in records) == 1
    told.error = None
    forget_pauses()
    Alert.objects.update(notify_at=timezone.now() - CALM)
    watch()
    assert sorted(told.events) == [("opened", "a"), ("opened", "b")]


def test_an_alert_is_taken_when_its_turn_comes_not_when_the_first_one_is_sent(watch, found, told):
    """The ones before it may last for minutes, and another leader tells meanwhile."""
    found.extend([trouble("a"), trouble("b")])
    taken = []

    def tell(event):
        told.events.append((event.kind, event.subject))
        taken.append(Alert.objects.filter(notify_at__gt=timezone.now() + timedelta(minutes=4)).count())

    told.tell = tell
    watch()
    assert taken == [1, 1]


def test_that_an_operator_called_it_resolved_is_told(watch, found, told):
    found.append(trouble())
    watch()
    resolve_alert(Alert.objects.get().pk)
    found.clear()
    watch()
    assert told.events == [("opened", "queue bulk"), ("resolved", "queue bulk")]


def test_after_twenty_failures_a_notifier_is_given_up(watch, found, told):
    found.append(trouble())
    told.error = RuntimeError("no")
    watch()
    for _ in range(25):
        forget_pauses()
        Alert.objects.update(notify_at=timezone.now() - CALM)
        watch()
    alert = Alert.objects.get()
    assert (alert.notified["test"]["failures"], alert.notify_at) == (20, None)


def test_who_was_not_told_of_the_beginning_is_not_told_of_the_end(watch, found, told):
    told.error = RuntimeError("no")
    found.append(trouble())
    watch()
    told.error = None
    resolve_alert(Alert.objects.get().pk)
    found.clear()
    let_time_pass(timedelta(seconds=1))
    watch()
    assert told.events == []
    assert Alert.objects.get().notify_at is None


def test_what_happens_while_somebody_is_told_is_told_next_time(watch, found, told):
    found.append(trouble())
    tell = told.tell

    def resolved_meanwhile(event):
        tell(event)
        if event.kind == "opened":
            resolve_alert(event.id)

    told.tell = resolved_meanwhile
    watch()
    found.clear()
    told.tell = tell
    let_time_pass(timedelta(seconds=1))
    watch()
    assert told.events == [("opened", "queue bulk"), ("resolved", "queue bulk")]
