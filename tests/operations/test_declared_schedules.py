"""The table follows the code: at once where nobody else has a say, and without a fight where two builds run."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from django_jobs import disable_schedule, enable_schedule
from django_jobs.exceptions import InvalidSchedule
from django_jobs.models import Job, Schedule
from django_jobs.operations import declared_schedules as module
from django_jobs.operations.declared_schedules import DeclaredSchedules, sync_schedules
from django_jobs.operations.schedule_spec import make_spec
from tests.engines.support import another_connection
from tests.operations.schedules import MINUTE, fire, get, make, set_next
from tests.operations.support import committing, on_postgresql, start

pytestmark = pytest.mark.django_db

LONG_AGO = Now() - timedelta(minutes=11)


def words(name, **options):
    options = {"every": MINUTE} | options
    return make_spec(name, options.pop("type", "operations.note"), options.pop("payload", {"text": name}), options)


@pytest.fixture
def build(monkeypatch):
    """``build(spec, …)``: a build that declares these. Its ``sync()`` is what its processes do each minute."""

    class Build:
        def __init__(self, *specs):
            self.declared = DeclaredSchedules()
            for spec in specs:
                self.declared.add(spec)

        def sync(self, **how):
            with monkeypatch.context() as patch:
                patch.setattr(module, "declared_schedules", self.declared)
                return {synced.name: synced.action for synced in sync_schedules(**how)}

    return Build


def fall_silent(*names):
    """No process has declared these for longer than the word of one lasts."""
    Schedule.objects.filter(pk__in=names).update(declared_at=LONG_AGO)


def test_a_declaration_becomes_a_row_that_fires_from_now(build):
    assert build(words("digest")).sync() == {"digest": "created"}
    schedule = get()
    assert (schedule.declared_in_code, schedule.enabled, schedule.enabled_by) == (True, True, "code")
    fire(2)
    assert get().next_run_at > get().now - timedelta(seconds=30)
    assert not Job.objects.exists()


def test_syncing_again_changes_nothing(build):
    code = build(words("digest"))
    code.sync()
    before = get()
    assert code.sync() == {"digest": "unchanged"}
    assert get().updated_at == before.updated_at


def test_other_words_in_the_code_change_the_row(build):
    build(words("digest")).sync()
    assert build(words("digest", jitter=MINUTE, queue="bulk")).sync() == {"digest": "updated"}
    assert (get().jitter, get().queue) == (MINUTE, "bulk")


def test_what_was_edited_in_the_table_follows_the_code_again(build):
    code = build(words("digest"))
    code.sync()
    Schedule.objects.update(payload={"text": "edited"}, every=timedelta(hours=1))
    assert code.sync() == {"digest": "updated"}
    assert (get().payload, get().every) == ({"text": "digest"}, MINUTE)


def test_the_operators_word_on_enabled_stands(build):
    build(words("digest")).sync()
    disable_schedule("digest")
    build(words("digest", jitter=MINUTE)).sync()
    assert (get().enabled, get().jitter) == (False, MINUTE)
    build(words("other", enabled=False)).sync(forget=False)
    enable_schedule("other")
    build(words("other", enabled=False, jitter=MINUTE)).sync(forget=False)
    assert get("other").enabled


def test_disabled_by_sql_it_stays_so_until_the_code_changes(build):
    code = build(words("digest"))
    code.sync()
    Schedule.objects.update(enabled=False)
    code.sync()
    assert not get().enabled


def test_the_code_may_declare_it_disabled(build):
    build(words("digest", enabled=False)).sync()
    assert not get().enabled
    build(words("digest", enabled=True)).sync()
    assert get().enabled


def test_a_schedule_made_at_run_time_is_left_alone(build):
    make("by hand")
    build().sync(decide=True)
    assert get("by hand").enabled


# What left the code


def test_what_left_the_code_is_disabled_and_kept(build):
    build(words("digest")).sync()
    fall_silent("digest")
    assert build().sync() == {"digest": "disabled"}
    schedule = get()
    assert (schedule.enabled, schedule.declared_in_code) == (False, False)
    assert build().sync() == {}


def test_it_is_not_disabled_while_a_process_declares_it(build):
    build(words("digest")).sync()
    assert build().sync() == {}
    assert get().enabled


def test_the_command_disables_it_at_once(build):
    build(words("digest")).sync()
    assert build().sync(decide=True) == {"digest": "disabled"}
    assert not get().enabled


def test_what_comes_back_is_enabled_from_now(build):
    code = build(words("digest"))
    code.sync()
    fall_silent("digest")
    build().sync()
    fire()
    set_next("digest", timedelta(days=1))
    assert code.sync() == {"digest": "updated"}
    fire(2)
    assert get().enabled
    assert not Job.objects.exists()


def test_what_an_operator_had_disabled_comes_back_disabled(build):
    code = build(words("digest"))
    code.sync()
    disable_schedule("digest")
    fall_silent("digest")
    build().sync()
    code.sync()
    assert not get().enabled


def test_what_an_operator_enables_after_it_left_the_code_stays_enabled(build):
    build(words("digest")).sync()
    build().sync(decide=True)
    enable_schedule("digest")
    build().sync(decide=True)
    assert get().enabled


# Two builds side by side


def test_both_sets_fire_while_both_builds_run(build):
    old, new = build(words("kept"), words("dropped")), build(words("kept"), words("added"))
    for _ in range(3):
        old.sync()
        new.sync()
    names = ("added", "dropped", "kept")
    fire()
    for name in names:
        set_next(name, timedelta(0))
    fire()
    assert sorted(Job.objects.values_list("payload__text", flat=True)) == list(names)


def test_the_newer_words_win_however_often_the_old_build_starts_again(build):
    old, new = build(words("digest")), build(words("digest", jitter=MINUTE))
    old.sync()
    new.sync()
    for _ in range(3):
        assert old.sync() == {"digest": "newer elsewhere"}
        assert new.sync() == {"digest": "unchanged"}
    assert get().jitter == MINUTE


def test_the_word_of_one_process_is_refreshed_by_each_of_its_build(build):
    old, new = build(words("digest")), build(words("digest", jitter=MINUTE))
    old.sync()
    new.sync()
    fall_silent("digest")
    new.sync()
    assert old.sync() == {"digest": "newer elsewhere"}


def test_a_rollback_wins_when_the_newer_build_is_gone(build):
    old, new = build(words("digest")), build(words("digest", jitter=MINUTE))
    old.sync()
    new.sync()
    fall_silent("digest")
    assert old.sync() == {"digest": "updated"}
    assert get().jitter == timedelta(0)
    assert new.sync() == {"digest": "newer elsewhere"}


def test_a_rollback_wins_at_once_by_the_command(build):
    old, new = build(words("digest")), build(words("digest", jitter=MINUTE))
    old.sync()
    new.sync()
    assert old.sync(decide=True) == {"digest": "updated"}
    assert new.sync() == {"digest": "newer elsewhere"}
    assert get().jitter == timedelta(0)


def test_the_command_of_the_new_build_is_not_undone_by_old_processes_on_their_way_out(build):
    old, new = build(words("dropped")), build()
    old.sync()
    new.sync(decide=True)
    assert old.sync() == {"dropped": "newer elsewhere"}
    assert not get("dropped").enabled


# One that is wrong


@pytest.mark.parametrize("wrong", [{"type": "operations.unheard"}, {"payload": {"txet": 1}}], ids=str)
def test_one_that_is_wrong_is_reported_and_the_others_are_synced(build, wrong):
    code = build(words("wrong", **wrong), words("fine"))
    assert code.sync() == {"wrong": "wrong", "fine": "created"}


@committing
@on_postgresql
def test_a_row_that_somebody_has_locked_is_left_for_another_time(build):
    code = build(words("digest"))
    code.sync()
    fall_silent("digest")
    with another_connection() as somebody:
        somebody.execute("SELECT 1 FROM django_jobs_schedule FOR UPDATE")
        with pytest.raises(OperationalError, match="lock timeout"):
            start(code.sync).result(timeout=20)


def test_a_name_is_declared_once(build):
    assert build(words("digest"), words("digest"))
    with pytest.raises(InvalidSchedule, match="declared twice"):
        build(words("digest"), words("digest", jitter=MINUTE))


def test_a_dry_run_tells_and_changes_nothing(build):
    build(words("left"), words("changed")).sync()
    told = build(words("changed", jitter=MINUTE), words("new")).sync(decide=True, dry_run=True)
    assert told == {"changed": "updated", "new": "created", "left": "disabled"}
    assert get("left").enabled
    assert get("changed").jitter == timedelta(0)
    assert not Schedule.objects.filter(pk="new").exists()
