"""``python -m tests.process.fleet COUNT …``: keeps so many ``runjobworker …`` alive.

It forks a new one for each that dies: after Django's set-up, so that it is there in a fraction of a second, and
before any connection.
"""

import os
import sys

import django
from django.core.management import call_command


def main(count, *arguments):
    django.setup()
    children = set()
    while True:
        while len(children) < count:
            children.add(start(arguments))
        pid, _ = os.wait()
        children.discard(pid)


def start(arguments):
    if pid := os.fork():
        return pid
    call_command("runjobworker", *arguments)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
