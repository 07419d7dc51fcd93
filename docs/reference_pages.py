"""The reference pages, made from the code. ``generate.py`` writes them, a test compares. Needs Django set up."""

from __future__ import annotations

import inspect
import pkgutil
from argparse import SUPPRESS, Action
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from datetime import timedelta
from importlib import import_module
from types import UnionType
from typing import Any, get_args, get_origin

from django.core.management.base import BaseCommand

import django_jobs
from django_jobs import exceptions
from django_jobs.conf import Settings
from django_jobs.handle import JobHandle
from django_jobs.maintenance.notifiers import AlertEvent
from django_jobs.management import commands
from django_jobs.operations.bulk import BulkInfo, BulkPreview
from django_jobs.operations.dead_groups import DeadGroupDetail, DeadGroupInfo, DeadGroupPage
from django_jobs.operations.explain import Reason
from django_jobs.operations.lookup import JobInfo
from django_jobs.retry import RetryPolicy, RetryWindow

NOTE = "% Written by docs/generate.py. Change the code or reference_pages.py, then run it.\n"

SETTINGS_INTRO = """\
One dictionary, `DJANGO_JOBS`. It is read when it is first needed, checked as a whole, and frozen. A wrong value raises
`ConfigurationError`, which names every fault at once; an unknown key names the nearest known one.

A *duration* is a `datetime.timedelta` or a number of seconds.

```python
DJANGO_JOBS = {
    "QUEUES": ["default", "urgent", "bulk"],
    "LEASE": 60,
    "RETRY": {"base": 5, "cap": 3600},
}
```
"""

SETTINGS_OUTRO = """\
## What has to agree

- `RENEW_EVERY` is at most a third of `LEASE`, so that two renewals in a row may fail before a lease runs out.
- `LEASE` is at least 1 second.
- `DEFAULT_QUEUE` is one of `QUEUES`.
- If `DATABASE` is not `default`, put `"django_jobs.routers.JobsRouter"` first in `DATABASE_ROUTERS`, so that `migrate`
  and the ORM find the tables there.
"""

COMMANDS_INTRO = """\
The options below are each command's own. Django adds its usual ones (`--settings`, `--verbosity`, …); `--help` shows
all of them.
"""

API_INTRO = """\
Everything on this page that says `from django_jobs import …` is public: it changes only with a line in the changelog.
So are the attributes and methods listed here of what these names return. The models in `django_jobs.models` may be read
and filtered; leave writing to the functions here. Anything else may change in any release.
"""


# Settings


def settings_page() -> str:
    parts = [NOTE, "# Settings\n", SETTINGS_INTRO]
    for name, field in Settings.model_fields.items():
        parts.append(f"## {name.upper()}\n\n{field.description}\n")
        kind = f"- Type: {_kind(field.annotation)}{_limits(field.metadata)}"
        parts.append(f"{kind}\n- Default: {_shown(field.get_default(call_default_factory=True))}\n")
    return "\n".join([*parts, SETTINGS_OUTRO])


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is UnionType:
        return " or ".join(_kind(part) for part in get_args(annotation))
    words = {
        timedelta: "duration",
        type(None): "`None`",
        RetryPolicy: "a dictionary of durations, or a `RetryPolicy`",
        tuple: "list of strings",
        frozenset: "list of strings",
        str: "string",
        bool: "`True` or `False`",
        int: "whole number",
    }
    return words[get_origin(annotation) or annotation]


def _limits(metadata: list[Any]) -> str:
    low = next((item.ge for item in metadata if hasattr(item, "ge")), None)
    high = next((item.le for item in metadata if hasattr(item, "le")), None)
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    return "" if low is None else f", at least {low:,}"


def _shown(value: Any) -> str:
    match value:
        case timedelta():
            return duration(value)
        case RetryPolicy():
            parts = (f"{name} {duration(getattr(value, name))}" for name in ("base", "cap", "floor"))
            return ", ".join(parts)
        case tuple() | frozenset():
            return f"`{sorted(value)!r}`"
    return f"`{value!r}`"


def duration(value: timedelta) -> str:
    """In words: ``14 days``, ``1 hour 30 minutes``, ``0.1 seconds``."""
    days, rest = divmod(value, timedelta(days=1))
    hours, rest = divmod(rest, timedelta(hours=1))
    minutes, rest = divmod(rest, timedelta(minutes=1))
    amounts = [(days, "day"), (hours, "hour"), (minutes, "minute"), (rest.total_seconds(), "second")]
    words = [f"{amount:g} {unit}{'' if amount == 1 else 's'}" for amount, unit in amounts if amount]
    return " ".join(words) or "0 seconds"


# Retries


def retry_windows() -> str:
    """The table in the guide about retries."""
    windows = {attempts: RetryPolicy().window(attempts) for attempts in (2, 3, 5, 8, 10, 12, 15, 20, 25)}
    rows = (
        f"| {attempts} | {_rounded(w.shortest)} | {_rounded(w.expected)} | {_rounded(w.longest)} |"
        for attempts, w in windows.items()
    )
    return "\n".join(["| `max_attempts` | shortest | expected | longest |", "|---|---|---|---|", *rows])


def _rounded(value: timedelta) -> str:
    """To the second from a minute on."""
    exact = value if value < timedelta(minutes=1) else timedelta(seconds=round(value.total_seconds()))
    return duration(exact)


# Commands


def commands_page() -> str:
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    return "\n".join([NOTE, "# Commands\n", COMMANDS_INTRO, *(_command(name) for name in names)])


def _command(name: str) -> str:
    command = import_module(f"django_jobs.management.commands.{name}").Command()
    usual = {option for action in _actions(BaseCommand()) for option in action.option_strings}
    own = [action for action in _actions(command) if not usual.intersection(action.option_strings)]
    own = [action for action in own if action.help != SUPPRESS]
    rows = "\n".join(f"| {_option(action)} | {_text(action.help or '')} |" for action in own)
    table = f"\n| option | meaning |\n|---|---|\n{rows}\n" if rows else ""
    return f"## {name}\n\n```text\n{command.help.strip()}\n```\n{table}"


def _actions(command: Any) -> list[Action]:
    actions: list[Action] = command.create_parser("manage.py", "command")._actions
    return actions


def _option(action: Action) -> str:
    names = ", ".join(action.option_strings) or action.dest
    value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
    return f"`{names}{value}`"


# API


def api_page() -> str:
    sections: dict[str, list[tuple[str, Any]]] = {
        "Declaring and enqueueing": [
            *_public("job"),
            ("JobHandle", JobHandle),
            *_public("enqueue", "aenqueue", "EnqueuedJob", "job_context"),
        ],
        "Inside a handler": [*_public("RunningJob", "Retry", "Snooze", "Cancel", "Bury")],
        "Looking and acting": [
            *_public("get_job"),
            ("JobInfo", JobInfo),
            *_public("cancel", "retry_dead", "discard_dead", "pause", "resume"),
        ],
        "Schedules": [
            *_public("schedule", "create_schedule", "update_schedule", "delete_schedule"),
            *_public("enable_schedule", "disable_schedule", "run_schedule_now"),
            *_public("get_schedule", "list_schedules", "preview_schedule"),
        ],
        "Silence and alerts": [
            *_public("at_least", "near_usual", "alerts", "acknowledge_alert", "resolve_alert"),
            ("AlertEvent", AlertEvent),
        ],
        "Triage": [
            *_public("dead_groups"),
            ("DeadGroupPage", DeadGroupPage),
            ("DeadGroupInfo", DeadGroupInfo),
            *_public("dead_group"),
            ("DeadGroupDetail", DeadGroupDetail),
            *_public("dead_count", "DeadFilter", "Actor", "preview_bulk"),
            ("BulkPreview", BulkPreview),
            *_public("start_bulk", "get_bulk", "confirm_bulk", "abort_bulk"),
            ("BulkInfo", BulkInfo),
            *_public("retry_changed", "run_now", "change_priority", "explain"),
            ("Reason", Reason),
        ],
        "Retry policy": [*_public("RetryPolicy"), ("RetryWindow", RetryWindow)],
    }
    shown = {name for entries in sections.values() for name, _ in entries}
    if missing := set(django_jobs.__all__) - shown:
        sections["More"] = _public(*sorted(missing))
    parts = [NOTE, "# Python API\n", API_INTRO]
    for title, entries in sections.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, thing) for name, thing in entries]
    return "\n".join([*parts, _errors()])


def _public(*names: str) -> list[tuple[str, Any]]:
    return [(name, getattr(django_jobs, name)) for name in names]


def _entry(name: str, thing: Any) -> str:
    head = f"### {name}\n"
    if name in django_jobs.__all__:
        head += f"\n`from django_jobs import {name}`\n"
    if not inspect.isclass(thing):
        return f"{head}\n{_code(thing, name)}\n\n{_text(inspect.getdoc(thing) or '')}\n"
    lines = [head, _text(_own_doc(thing)), ""]
    if fields := _fields(thing):
        lines += [fields, ""]
    elif issubclass(thing, Exception):
        lines += [_code(thing.__init__, name), ""]
    members = list(_members(thing))
    lines += [_attribute(member, value) for member, value in members if not inspect.isfunction(value)]
    lines += [f"\n{_method(member, value)}" for member, value in members if inspect.isfunction(value)]
    return "\n".join(lines).rstrip() + "\n"


def _own_doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _fields(thing: Any) -> str:
    """A dataclass's fields; handles are made by ``@job``, so theirs do not matter."""
    if thing.__name__ == "JobHandle":
        return ""
    fields = getattr(thing, "__dataclass_fields__", {})
    return "\n".join(f"- `{field.name}: {field.type}{_field_default(field)}`" for field in fields.values())


def _field_default(field: Any) -> str:
    return "" if field.default is MISSING else f" = {_default(field.default)}"


def _members(thing: Any) -> Iterator[tuple[str, Any]]:
    for name, value in vars(thing).items():
        documented = inspect.isfunction(value) or isinstance(value, property) or hasattr(value, "attrname")
        if documented and not name.startswith("_"):
            yield name, value


def _method(name: str, value: Any) -> str:
    return f"#### {name}\n\n{_code(value, name)}\n\n{_text(inspect.getdoc(value) or '')}"


def _attribute(name: str, value: Any) -> str:
    getter = value.fget if isinstance(value, property) else value.func
    doc = _text(inspect.getdoc(getter) or "")
    return f"- `{name}: {getter.__annotations__['return']}`{f': {doc}' if doc else ''}"


def _code(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    parts = list(_parameters([p for p in signature.parameters.values() if p.name != "self"]))
    returns = signature.return_annotation
    arrow = "" if returns is inspect.Signature.empty or function.__name__ == "__init__" else f" -> {returns}"
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    line = f"{prefix}{name}({', '.join(parts)}){arrow}"
    if len(line) > 100:
        line = f"{prefix}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"
    return f"```python\n{line}\n```"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    starred = False
    for number, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        annotation = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        yield f"{stars.get(parameter.kind, '')}{parameter.name}{annotation}{default}"
        following = parameters[number + 1].kind if number + 1 < len(parameters) else None
        positional = inspect.Parameter.POSITIONAL_ONLY
        if parameter.kind is positional and following is not positional:
            yield "/"


def _default(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"timedelta(seconds={value.total_seconds():g})" if value else "timedelta(0)"
    return "..." if " at 0x" in repr(value) else repr(value)


def _errors() -> str:
    tree = _own_doc(exceptions).partition("\n\n")[2]
    return (
        "## Errors\n\nIn `django_jobs.exceptions`. Every message ends with what to do.\n\n"
        f"```text\n{tree.strip()}\n```\n"
    )


def _text(docstring: str) -> str:
    return docstring.replace("``", "`")


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "api.md": api_page,
}
