"""German: no text that people see is missing from the catalogue, left in English, or written past it."""

import ast
import gettext
import re
from pathlib import Path

import pytest
from django.template import engines
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils import translation

import django_jobs
from django_jobs import labels
from django_jobs.admin import ADMINS
from django_jobs.operations.schedules import create_schedule
from tests.factories import DeadJobFactory

from .support import url
from .test_schedules import FORM

PACKAGE = Path(django_jobs.__file__).parent
CATALOGUE = PACKAGE / "locale/de/LC_MESSAGES/django.po"
MARKS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
ENTRY = re.compile(r'^msgid "(.+)"\n(?:msgid_plural "(.+)"\n)?((?:msgstr.*\n?)+)', re.MULTILINE)
# The same word in both languages.
ALIKE = {
    "API", "Job", "Jobs", "Minute", "Name", "Status", "Traceback", "Version", "Worker", "in %s", "in %(type)s", "jobs",
    "%(schedule)s, %(zone)s", "%(hours)s %(minutes)s",
}  # fmt: skip
# Whatever these refuse, the admin shows.
REFUSING = [
    *PACKAGE.glob("admin/*.py"),
    *PACKAGE.glob("cron/*.py"),
    *(PACKAGE / "operations" / f"{name}.py" for name in ("bulk", "options", "queues", "schedule_spec", "schedules")),
    *(PACKAGE / f"{name}.py" for name in ("conf", "expectations", "registry")),
]
REFUSALS = {"InvalidOption", "InvalidSchedule", "Refused", "ScheduleNotFound", "UnknownJobType", "UnknownQueue"}
ENGLISH = re.compile(r"\b(is|not|must|the|of|are|has|it|with|be|no|did|you|write|give)\b", re.IGNORECASE)


def unquoted(text):
    return ast.literal_eval(f'"{text}"')


def entries():
    """Msgid, plural msgid or empty, translations."""
    for singular, plural, translations in ENTRY.findall(CATALOGUE.read_text(encoding="utf-8")):
        told = [unquoted(text) for text in re.findall(r'^msgstr(?:\[\d\])? "(.*)"$', translations, re.MULTILINE)]
        yield unquoted(singular), unquoted(plural), told


def catalogue():
    """Each msgid, singular and plural ones."""
    return {msgid: told for *msgids, told in entries() for msgid in msgids if msgid}


def texts_of_code():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MARKS:
                yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and type(arg.value) is str)


def texts_of_templates():
    engine = engines["django"].engine
    for path in PACKAGE.glob("templates/**/*.html"):
        source = path.read_text(encoding="utf-8")
        nodes = engine.from_string(source).nodelist
        yield from re.findall(r'\b_\("(.+?)"\)', source)
        yield from (str(node.filter_expression.var.literal) for node in nodes.get_nodes_by_type(TranslateNode))
        for node in nodes.get_nodes_by_type(BlockTranslateNode):
            yield from (node.render_token_list(tokens)[0] for tokens in (node.singular, node.plural) if tokens)


@pytest.mark.parametrize(("texts", "least"), [(texts_of_code, 250), (texts_of_templates, 200)])
def test_the_catalogue_has_every_text(texts, least):
    found = set(texts())
    assert len(found) > least
    assert found - set(catalogue()) == set()


def test_every_text_is_translated_and_none_is_left_in_english():
    assert "#, fuzzy" not in CATALOGUE.read_text(encoding="utf-8")
    assert [msgid for msgid, told in catalogue().items() if not all(told)] == []
    assert {msgid for msgid, told in catalogue().items() if msgid in told} - ALIKE == set()


def test_a_translation_has_the_places_of_its_text():
    def places(text):
        return sorted(re.findall(r"%(?:\(\w+\))?[srd]", text))

    for singular, plural, told in entries():
        assert places(told[0]) == places(singular)
        assert places(told[-1]) == places(plural or singular)


def test_the_compiled_catalogue_is_that_of_the_source():
    with CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for singular, plural, told in entries():
        if plural:
            assert [compiled.ngettext(singular, plural, count) for count in (1, 2)] == told
        else:
            assert compiled.gettext(singular) == told[0]


def test_no_refusal_is_written_past_the_catalogue():
    for path in REFUSING:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[text, *_])) if name in REFUSALS:
                    said = text
                case ast.Yield(value=said) if path.name == "schedule_spec.py":
                    pass
                case _:
                    continue
            assert not isinstance(said, ast.JoinedStr | ast.Constant), (path.name, node.lineno)


@pytest.mark.parametrize("model", ADMINS, ids=lambda model: model._meta.model_name)
@pytest.mark.parametrize("name", ["verbose_name", "verbose_name_plural"])
def test_models_have_german_names(model, name):
    told = {}
    for language in ("en", "de"):
        with translation.override(language):
            told[language] = str(getattr(model._meta, name))
    assert told["de"] != told["en"] or told["de"].capitalize() in ALIKE


@pytest.mark.django_db
def test_the_index_of_the_admin_speaks_german(boss):
    text = boss.get("/admin/", headers={"accept-language": "de"}).content.decode()
    for name in ("Tote Jobs", "Warteschlangen", "Zeitpläne", "Meldungen", "Sammelvorgänge", "Protokolleinträge"):
        assert name in text


@pytest.mark.django_db
def test_pages_speak_german(boss):
    DeadJobFactory.create_many(1234)
    text = boss.get(url("deadjob_groups"), headers={"accept-language": "de"}).content.decode()
    assert 'lang="de"' in text
    assert "1.234 tote Jobs insgesamt" in text
    assert "Übersicht" in text


WRONG = [
    *({"cron": cron} for cron in ("0 8 * *", "0 0 8 * * *", "61 * * * *", "@reboot", "@Daily", "0 0 * * jan", "# x")),
    *({"cron": cron} for cron in ("0 0 31 2 *", "*/0 * * * *", "0 22-6 * * *", "monday", "0 0 15W * *", "H * * * *")),
    {"cron": ""},
    {"cron": "", "every": "0.5"},
    {"cron": "", "every": "1.5"},
    {"every": "60"},
    {"every": "soon"},
    {"timezone": "Mars/Base"},
    {"timezone": "Europe/Berln"},
    {"jitter": "-1"},
    {"start_at": "soon"},
    {"start_at": "9999-01-01T00:00"},
    {"start_at": "2027-01-01T00:00", "end_at": "2026-01-01T00:00"},
    {"priority": "high"},
    {"priority": "99999"},
    {"queue": "bulkk"},
    {"tenant": "x" * 300},
    {"catch_up": "latst"},
    {"expect_success_within": "0.5"},
    {"expect": "x"},
    {"expect": '{"rows": 5}'},
    {"expect": '{"rows": {"near_usual": 0}}'},
    {"type": "marc"},
    {"name": "x" * 300},
    {"name": "taken"},
]


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_schedule_is_refused_in_german(boss, wrong):
    create_schedule("taken", type="mark", payload={"label": "a"}, cron="0 8 * * *")
    said = boss.post(url("schedule_save"), FORM | wrong, headers={"accept-language": "de"}).context["fault"]
    assert said
    assert ENGLISH.findall(said) == []


@pytest.mark.django_db
def test_a_queue_and_a_number_are_refused_in_german(boss):
    for name, form in (
        ("queue_pause", {"queue": "bulkk"}),
        ("queue_pause", {"queue": "bulk", "until": "soon"}),
        ("deadjob_preview", {"kind": "retry", "which": "ticked"}),
    ):
        response = boss.post(url(name), form, headers={"accept-language": "de"}, follow=True)
        (said,) = [str(message) for message in response.context["messages"]]
        assert ENGLISH.findall(said.replace("soon", "")) == []


def test_every_deed_is_told_in_words():
    """Whatever operations enter into the audit."""
    deeds = {
        arg.value
        for path in PACKAGE.glob("operations/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("audit", "_in_batches", "_move", "_change")
        for arg in node.args[1:3]
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    } - {"job", "queue", "schedule", "alert", "bulk_operation"}
    assert {"delete", "cancel", "acknowledge", "run_now", "retry", "discard"} <= deeds
    assert deeds - set(labels.ACTIONS) == set()


@pytest.mark.django_db
def test_a_refusal_is_english_for_who_reads_english(boss):
    said = boss.post(url("schedule_save"), FORM | {"cron": "0 8 * *"}).context["fault"]
    assert "it has 4 fields and needs 5" in said
