"""``python enter.py <root> <uid>:<gid> <command> …`` becomes the container's process.

It keeps its process id, so signals and the exit code are the command's own. It ends when the test run ends, however.
"""

import ctypes
import os
import shutil
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES = 64  # more than there are; the kernel refuses the rest


def enter(root: str, user: str, command: list[str]) -> None:
    """Give up everything but ``root`` and run the command there; returns only by an error."""
    libc = ctypes.CDLL(None)
    parent = os.getppid()
    uid, gid = map(int, user.split(":"))
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # last: a change of user forgets it
    if os.getppid() != parent:
        os._exit(1)
    # Not execvp, which imports a module of this machine's Python that is out of reach by now.
    program = shutil.which(command[0]) or command[0]
    os.execve(program, command, dict(os.environ))  # noqa: S606 - that is the point


if __name__ == "__main__":
    enter(sys.argv[1], sys.argv[2], sys.argv[3:])
