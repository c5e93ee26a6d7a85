"""Functions that need a process of their own."""

import contextlib
import os
import time

from worker_tasks import note

import godelayed


@godelayed.task(isolated=True, retry=0)
async def lone(block):
    """Returns its process, or blocks for ever."""
    note('lone')
    while block:
        with contextlib.suppress(BaseException):  # also what tells it to end
            time.sleep(0.05)
    return os.getpid()
