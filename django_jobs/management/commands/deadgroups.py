"""``manage.py deadgroups``: dead jobs by what went wrong."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from django_jobs.management.shell_command import ShellCommand
from django_jobs.operations.dead_groups import ORDERS, DeadGroupInfo, dead_groups

HELP = """\
List dead jobs by group: a job type and the fingerprint of an error. Largest group first.
"""


class Command(ShellCommand):
    help = HELP

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--type", help="Groups of this job type.")
        parser.add_argument("--error", help="Groups with this text in the error's type or first line.")
        parser.add_argument("--order", choices=ORDERS, default="count", help="Default: count.")
        parser.add_argument("--limit", type=int, default=25, metavar="N", help="Default: 25.")

    def act(self, options: dict[str, Any]) -> tuple[Any, str]:
        terms = {name: options[name] for name in ("type", "error", "order", "limit")}
        page = dead_groups(**terms)
        lines = [_line(group) for group in page.groups] or ["No job is dead."]
        return page.groups, "\n".join([*lines, *["…"] * page.more])


def _line(group: DeadGroupInfo) -> str:
    new = "  new in this release" if group.is_new else ""
    seen = f"{group.first_seen:%Y-%m-%d %H:%M} to {group.last_seen:%Y-%m-%d %H:%M} UTC"
    return (
        f"{group.count:>9,}  {group.type}  {group.fingerprint}  {seen}{new}\n"
        f"           {group.error_type}: {group.error_summary}"
    )
