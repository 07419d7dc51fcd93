"""Writes the reference pages: ``python docs/generate.py``, after any change of what they show."""

import os
import sys
from importlib import import_module
from pathlib import Path

import django

DOCS = Path(__file__).parent


def main() -> None:
    sys.path.insert(0, str(DOCS.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    for name, page in import_module("reference_pages").PAGES.items():
        (DOCS / "reference" / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
