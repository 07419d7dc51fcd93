"""The demo from curtain to curtain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from django_jobs.registry import registry
from testproject.shop.models import Customer, Product

from . import cast, script, stage, work
from .checks import verdicts
from .evidence import REQUESTS, Evidence, JobRecord
from .narrator import Narrator
from .partner_server import PartnerServer
from .story import Scene, Story

OVERVIEW = "http://127.0.0.1:8000/admin/django_jobs/job/overview/"
COLUMNS = ("enqueued", "succeeded", "cancelled", "dead", "left", "retries", "snoozes")


def play(narrator: Narrator) -> None:
    """Everything, checks included. Raises CommandError if something went wrong."""
    customers: Mapping[str, Customer]
    stage.clear()
    narrator.headline("A few seconds in the life of a shop")
    narrator.say(f"Its database: {stage.connect()}.")
    call_command("migrate", verbosity=0, interactive=False)
    with PartnerServer(settings.SHOP_DIR / REQUESTS) as partners:
        cast.leave()
        customers = cast.enter(partners.url)
        narrator.say(f"Migrated. {len(customers)} customers are waiting at three stores.")
        story = Story(review_delay=stage.REVIEW_DELAY, stock=_stock())
        _sell(story, customers, narrator)
        story.save()
        _work(story, partners.url, narrator)
    story.save()
    judge(narrator)


def judge(narrator: Narrator) -> None:
    """Compare the last demo's story with the facts. Raises CommandError that says what is wrong."""
    try:
        story = Story.load()
    except FileNotFoundError:
        raise CommandError("There was no demo yet that could be checked: manage.py demo") from None
    evidence = Evidence()
    narrator.headline("What became of the jobs")
    narrator.table(("job type", "queue", *COLUMNS), _rows(story, evidence))
    narrator.headline("Is that right? From the tables, the files and the other side")
    _examine(story, evidence, narrator)


def say_goodbye(narrator: Narrator) -> None:
    narrator.headline("Try next")
    files = stage.shown(settings.SHOP_DIR)
    narrator.suggest(f"ls -R {files}", "the mails, invoices, gift cards and the worker's log")
    narrator.suggest(f"rm $(ls {files}/mail/* | tail -1); {stage.command('demo --check')}", "see the checks notice")
    narrator.suggest(stage.command("runserver"), _how_to_log_in())
    narrator.suggest("make demo DATABASE_URL=postgres://user:password@localhost/demo", "the same on PostgreSQL")


def _how_to_log_in() -> str:
    """A password that everybody knows is only good for a database that is only ours."""
    if not stage.has_own_database():
        return f"and look at the jobs in {OVERVIEW}, after createsuperuser"
    get_user_model().objects.create_superuser("demo", password="demo")
    return f"and look at the jobs in {OVERVIEW} as demo, password demo"


def _sell(story: Story, customers: Mapping[str, Customer], narrator: Narrator) -> None:
    story.scenes += script.play(script.ACTS, customers)
    narrator.say(f"{len(story.scenes)} visits to the checkout, each one transaction:")
    for line in _summary(story):
        narrator.add(line)
    story.other_jobs += script.play_the_rest()
    mails = sum(job.type == "shop.send_campaign_mail" for job in story.other_jobs)
    narrator.say(f"A campaign of {mails} mails, and the stock report, ordered twice by mistake.")


def _summary(story: Story) -> list[str]:
    by_outcome: dict[str, list[Scene]] = {"placed": [], "out of stock": [], "declined": []}
    for scene in story.scenes:
        by_outcome[scene.outcome].append(scene)
    placed, sold_out, declined = by_outcome.values()
    repeated = sum(job.duplicate for scene in placed for job in scene.jobs)
    return [
        f"{len(placed):2}  placed, with {_count(placed)}; {repeated} more welcome mails were duplicates by key",
        f"{len(sold_out):2}  out of stock: rolled back, together with {_count(sold_out)} enqueued before that",
        f"{len(declined):2}  declined by the bank at the very end: rolled back, together with {_count(declined)}",
        f"{_gift_cards_undone(placed):2}  without gift paper: a savepoint took the gift card's job back, not the order",
        f"{_cancelled(placed):2}  cancelled by the customer, which called off the job that asks for a review",
    ]


def _count(scenes: list[Scene]) -> str:
    number = sum(not job.duplicate for scene in scenes for job in scene.jobs)
    return f"{number} job{'' if number == 1 else 's'}"


def _gift_cards_undone(scenes: list[Scene]) -> int:
    return sum(len(scene.undone) for scene in scenes)


def _cancelled(scenes: list[Scene]) -> int:
    return sum(scene.cancelled for scene in scenes)


def _work(story: Story, partners: str, narrator: Narrator) -> None:
    narrator.say(f"manage.py runjobworker {' '.join(work.ARGUMENTS)}")
    narrator.add(f"Reviews are due {story.review_delay:g} s after the order. The ERP system does not exist,")
    narrator.add("one endpoint is gone, one is down for a moment, two orders fail half way ...")
    fail_first_attempt = [scene.number for scene in story.placed if scene.fails_once]
    story.worker = work.do_all(partners, fail_first_attempt)
    narrator.say("The worker has nothing left to do, and ended.")


def _rows(story: Story, evidence: Evidence) -> list[tuple[object, ...]]:
    names = [job_type.name for job_type in registry if evidence.of_type(job_type.name)]
    snoozes = {name: evidence.runs(story.worker)[f"{name} snoozed"] for name in names}
    rows = [_row(name, evidence.of_type(name), snoozes[name]) for name in names]
    total = _row("all", list(evidence.jobs.values()), sum(snoozes.values()))
    return [*rows, (total[0], "", *total[2:])]


def _row(name: str, jobs: list[JobRecord], snoozes: int) -> tuple[object, ...]:
    ended = Counter(job.status for job in jobs)
    known = [ended[status] for status in ("succeeded", "cancelled", "dead")]
    retries = sum(max(job.attempts - 1, 0) for job in jobs)
    queue = jobs[0].queue if jobs else ""
    return (name, queue, len(jobs), *known, len(jobs) - sum(known), retries, snoozes)


def _examine(story: Story, evidence: Evidence, narrator: Narrator) -> None:
    wrong = 0
    results = list(verdicts(story, evidence))
    for verdict in results:
        if verdict.problems:
            wrong += 1
            narrator.failed(verdict.claim, verdict.problems)
        else:
            narrator.passed(verdict.claim)
    if wrong:
        raise CommandError(f"{wrong} of {len(results)} checks failed. The worker's log: {_log()}")
    narrator.praise(f"All {len(results)} checks passed.")


def _log() -> str:
    return stage.shown(settings.SHOP_DIR / "worker.log")


def _stock() -> dict[str, int]:
    return {product.shelf: product.stock for product in Product.objects.filter(store__startswith=cast.PREFIX)}
