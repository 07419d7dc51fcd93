"""``guarded_exec.py PARENT UID GID PROGRAM ARGUMENT...``: become PROGRAM, and end when PARENT ends.

A program of its own and no ``preexec_fn``, because forking Python code is not safe beside threads, and no
``Popen(user=...)``, because that user may not be allowed to reach this interpreter.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, uid: int, gid: int, command: list[str]) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
    if os.getppid() == parent:
        os.execv(command[0], command)


if __name__ == "__main__":
    parent, uid, gid = map(int, sys.argv[1:4])
    main(parent, uid, gid, sys.argv[4:])
