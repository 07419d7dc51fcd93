"""``manage.py demo``: the shop at work, and proof that it went well."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from testproject.shop.demo import show, stage
from testproject.shop.demo.narrator import Narrator


class Command(BaseCommand):
    help = (
        "Place orders, run a worker until all is done, and check tables and files. Uses var/demo.sqlite3, or the "
        "database of DATABASE_URL, in which only the rows of stores named demo-... are touched."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="Only check again what the last demo left behind.")

    def handle(self, *args: Any, **options: Any) -> None:
        stage.enter()
        narrator = Narrator(self.stdout, self.style)
        if options["check"]:
            show.judge(narrator)
        else:
            show.play(narrator)
            show.say_goodbye(narrator)
