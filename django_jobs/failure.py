"""What is kept of an exception: bounded text that any column can hold.

Guarantees: ``Failure.capture`` never raises and takes well under a second, whatever it is given: exceptions
that cannot be printed, endless cause chains, groups of thousands, messages of megabytes. It does not redact:
a secret in a message is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from traceback import StackSummary, walk_tb
from types import FrameType

from django_jobs.storable import clean_text, visible_text

MESSAGE_BYTES = 8 * 1024
TRACEBACK_BYTES = 32 * 1024
SUMMARY_CHARACTERS = 200
TYPE_BYTES = 200

_CHAIN = 12
_MEMBERS = 8
_GROUP_DEPTH = 3
_EXCEPTIONS = 60
_FIRST_FRAMES, _LAST_FRAMES = 40, 160
_NOTES = 8
_INNER_MESSAGE_BYTES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed attempt.

    ``error_type``: ``module.QualName``, builtins without module. ``message``: at most 8 KiB.
    ``traceback``: at most 32 KiB, empty where nothing was raised. All sizes in bytes of UTF-8.
    """

    error_type: str
    message: str
    traceback: str

    @classmethod
    def capture(cls, error: BaseException) -> Failure:
        """What ``error`` says about itself. Never raises."""
        return cls(
            error_type=_type_name(error),
            message=clean_text(_message(error), MESSAGE_BYTES),
            traceback=clean_text(_traceback(error), TRACEBACK_BYTES),
        )

    @classmethod
    def of(cls, error_type: str, message: str) -> Failure:
        """A failure that no exception stands for, such as a lost worker."""
        return cls(
            error_type=clean_text(error_type, TYPE_BYTES),
            message=clean_text(message, MESSAGE_BYTES),
            traceback="",
        )

    @property
    def summary(self) -> str:
        """The message's first line that says something, else the type; at most 200 characters."""
        lines = (visible_text(line).strip() for line in self.message.splitlines())
        return next((line for line in lines if line), self.error_type)[:SUMMARY_CHARACTERS]


def _type_name(error: BaseException) -> str:
    try:
        kind = type(error)
        module, name = str(kind.__module__), str(kind.__qualname__)
        return clean_text(name if module == "builtins" else f"{module}.{name}", TYPE_BYTES)
    except BaseException:  # noqa: BLE001
        return "unnamed exception"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001
        return f"(the message could not be read: __str__ raised {_type_name(broken)})"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(_Report().lines(error))
    except BaseException as broken:  # noqa: BLE001
        return f"(the traceback could not be formatted: {_type_name(broken)})"


class _Report:
    """A traceback in the interpreter's layout, but with bounds on everything.

    ``traceback.TracebackException`` reads every member of a group, every cause and every frame before it
    lays out the few it shows.
    """

    def __init__(self) -> None:
        self._left = _EXCEPTIONS

    def lines(self, error: BaseException, depth: int = 0) -> Iterator[str]:
        """The chain of ``error``, oldest cause first, then its group's members."""
        for link, joint in reversed(list(_chain(error))):
            if self._left > 0:
                self._left -= 1
                yield from _one(link)
                yield from self._members(link, depth)
                if joint:
                    yield joint

    def _members(self, error: BaseException, depth: int) -> Iterator[str]:
        if not isinstance(error, BaseExceptionGroup):
            return
        shown = error.exceptions[:_MEMBERS] if depth < _GROUP_DEPTH else ()
        for number, member in enumerate(shown, 1):
            yield f"  +---------------- {number} ----------------\n"
            text = "".join(self.lines(member, depth + 1))
            yield from (f"  | {line}\n" for line in text.splitlines())
        if len(error.exceptions) > len(shown):
            yield f"  +---------------- and {len(error.exceptions) - len(shown)} more ----------------\n"


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The exception and its causes, newest first, each with the sentence that follows it."""
    seen: set[int] = set()
    link: BaseException | None = error
    joint = ""
    while link is not None and id(link) not in seen and len(seen) < _CHAIN:
        seen.add(id(link))
        yield link, joint
        if link.__cause__ is not None:
            joint = "\nThe above exception was the direct cause of the following exception:\n\n"
            link = link.__cause__
        else:
            joint = "\nDuring handling of the above exception, another exception occurred:\n\n"
            link = None if link.__suppress_context__ else link.__context__


def _one(error: BaseException) -> Iterator[str]:
    yield from _frames(error)
    message = clean_text(_message(error), _INNER_MESSAGE_BYTES)
    yield f"{_type_name(error)}: {message}\n" if message else f"{_type_name(error)}\n"
    for note in _notes(error):
        yield f"{note}\n"


def _frames(error: BaseException) -> Iterator[str]:
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return
    yield "Traceback (most recent call last):\n"
    cut = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
    if cut <= 0:
        yield from _layout(frames)
        return
    yield from _layout(frames[:_FIRST_FRAMES])
    yield f"  ... {cut} frames left out ...\n"
    yield from _layout(frames[-_LAST_FRAMES:])


def _layout(frames: list[tuple[FrameType, int]]) -> list[str]:
    return StackSummary.extract(iter(frames)).format()


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    if not isinstance(notes, list):
        return []
    return [clean_text(note, _INNER_MESSAGE_BYTES) for note in notes[:_NOTES] if isinstance(note, str)]
