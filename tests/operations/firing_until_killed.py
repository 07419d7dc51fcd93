"""``python -m tests.operations.firing_until_killed N``: fire what is due, and be killed right before statement N.

Statements are numbered from 0, COMMIT included; the last number is the one after the last. Prints the count if it
was not killed.
"""

import os
import signal
import sys

import django


def main() -> None:
    django.setup()
    from django.db import connection

    from django_jobs.operations.firing import SetAside, fire_due
    from tests.operations import handlers  # noqa: F401 - the types

    last, count = int(sys.argv[1]), 0

    def before_statement() -> None:
        nonlocal count
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def wrapper(execute, sql, params, many, context):
        before_statement()
        return execute(sql, params, many, context)

    commit = connection._commit

    def counted_commit():
        before_statement()
        commit()
        before_statement()

    connection.ensure_connection()
    connection._commit = counted_commit
    with connection.execute_wrapper(wrapper):
        fire_due(SetAside())
    print(count)


if __name__ == "__main__":
    main()
