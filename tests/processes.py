"""Which processes are there, read from /proc (on systems without it, none are seen)."""

from pathlib import Path

PROC = Path("/proc")


def is_running(pid: int) -> bool:
    return _parent_if_running(PROC / str(pid)) is not None


def children_of(pid: int) -> set[int]:
    """The living children, without the helper that multiprocessing keeps until the end."""
    folders = (folder for folder in PROC.glob("[0-9]*") if _parent_if_running(folder) == pid)
    return {int(folder.name) for folder in folders if b"multiprocessing.resource_tracker" not in command_line(folder)}


def command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


def _parent_if_running(folder: Path) -> int | None:
    try:
        after_name = (folder / "stat").read_text().rpartition(")")[2]
    except OSError:
        return None
    state, parent, *_ = after_name.split()
    return None if state == "Z" else int(parent)


def open_descriptors() -> int:
    """How many this process has."""
    return len(list((PROC / "self/fd").glob("*")))
