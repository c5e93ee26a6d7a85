"""The functions of interop_tasks as tasks of godelayed's worker, under the same paths, and some that have an id."""

import os
import signal
import time

import godelayed
import interop_tasks

for name in ('touch', 'record', 'add', 'fail_times'):
    godelayed.task(path='interop_tasks:' + name)(getattr(interop_tasks, name))


@godelayed.task(path='interop:total', backoff=[0])
def total(numbers: list[int], failures: int = 0):
    """Adds, after the given number of failures."""
    task = godelayed.current()
    interop_tasks.note_call('total', numbers, failures)
    if task.attempt <= failures:
        raise ValueError('attempt %d' % task.attempt)
    task.progress(len(numbers), len(numbers), 'added')
    return sum(numbers)


@godelayed.task(path='interop:sleep')
def sleep():
    interop_tasks.note_call('sleep')
    time.sleep(120)


@godelayed.task(path='interop:poison')
def poison():
    """Kills its process after a while."""
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


@godelayed.task(path='interop:tick')
def tick():
    """Records the id of the task."""
    interop_tasks.note_call('tick', godelayed.current().id)
