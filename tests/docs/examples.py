"""Runs the code blocks of a Markdown page in a new project, in their order.

A ``python`` block that begins with ``# path`` is written to that file; ``# at the end of path`` appends. Any other
``python`` block is run in the project. A ``pycon`` block is a doctest, a ``console`` block a list of commands
with their output; ``...`` stands for any text in both.
"""

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent  # the package of this tree, whichever is installed

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"# (at the end of )?([\w/]+\.py)\n")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

SESSION = """
import doctest, sys
import django
django.setup()
text = open(sys.argv[1]).read()
test = doctest.DocTestParser().get_doctest(text, {}, sys.argv[1], None, None)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
runner.run(test)
sys.exit(min(runner.failures, 1))
"""


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text(encoding="utf-8"))]


class Project:
    """A project in ``folder``; its settings are ``mysite.settings``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, block: Block) -> None:
        match block.language:
            case "python":
                self.run_python(block.text)
            case "pycon":
                self.run_session(block.text)
            case "console":
                self.run_console(block.text)

    def run_python(self, text: str) -> None:
        place = PLACE.match(text)
        if place is None:
            self.python("-c", f"import django\ndjango.setup()\n{text}")
            return
        file = self.folder / place[2]
        before = file.read_text(encoding="utf-8") if place[1] else ""
        file.write_text(before + "\n" + text, encoding="utf-8")

    def run_session(self, text: str) -> None:
        file = self.folder / "session.txt"
        file.write_text(text, encoding="utf-8")
        self.python("-c", SESSION, file.name)

    def run_console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            printed = self.command(command)
            if expected and not doctest.OutputChecker().check_output(expected, printed, FLAGS):
                raise AssertionError(f"{command}\nis to print\n{expected}\nand prints\n{printed}")

    def command(self, line: str) -> str:
        program, *arguments = line.split()
        match program:
            case "pip":
                return ""
            case "django-admin":
                return self.python("-m", "django", *arguments)
            case "python":
                return self.python(*arguments)
        raise AssertionError(f"unknown command: {line}")

    def python(self, *arguments: str) -> str:
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
        }
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout
