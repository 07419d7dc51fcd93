"""Use the installed package in a minimal project, and compare its files with those of the source tree."""

import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

warnings.simplefilter("error")


def files_below(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def main(source: Path) -> None:
    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_jobs"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "wheel.sqlite3"}},
        DJANGO_JOBS={"QUEUES": ["default"]},
        USE_TZ=True,
    )
    django.setup()

    import django_jobs

    installed = Path(django_jobs.__file__).parent
    if installed.is_relative_to(source.parent):
        sys.exit(f"the source tree was imported instead of the wheel: {installed}")
    if missing := files_below(source) - files_below(installed):
        sys.exit(f"not in the wheel: {', '.join(sorted(missing))}")
    if not list(installed.glob("engines/postgresql/sql/*.sql")):
        sys.exit("no .sql file is in the wheel")

    for part in ("templates/**/*.html", "static/**/*.css", "static/**/*.js", "locale/*/LC_MESSAGES/*.mo"):
        if not list(installed.glob(part)):
            sys.exit(f"no {part} is in the wheel")

    for name in django_jobs.__all__:
        getattr(django_jobs, name)
    call_command("migrate", verbosity=0)
    call_command("check")
    print(f"django-durable-jobs {version('django-durable-jobs')}: {len(files_below(installed))} files")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
