"""``python -m tests.process.old_release COMMAND``: a release that does not have the type ``mark_atomic`` yet."""

import sys

import django
from django.core.management import call_command

from django_jobs.registry import registry

if __name__ == "__main__":
    django.setup()
    del registry._by_name["mark_atomic"]
    call_command(*sys.argv[1:])
