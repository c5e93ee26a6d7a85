"""Task functions that keakon's worker imports, as a service's own tasks.py would hold them.

What they do is written to the file named by DELAYED_LEDGER, one line a step, appended with a single write so that the lines of
several processes never mix:

    start <id> <worker> <token>     a task begins; token is "-", the real package has none
    end <id> <worker> <token>       and ends
    call <function> <json>          the arguments a function was called with
"""

import json
import os
import time

_fd = None


def append(line):
    """Appends one line to the ledger."""
    global _fd
    if _fd is None:
        path = os.environ.get('DELAYED_LEDGER')
        if not path:
            raise RuntimeError('DELAYED_LEDGER is not set: expected the path of the file that tasks append to')
        _fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_fd, (line + '\n').encode())


def worker_name():
    return os.environ.get('DELAYED_WORKER', 'py-%d' % os.getpid())


def touch(task_id, millis=0):
    """Notes that it ran; millis is how long it works."""
    me = worker_name()
    append('start %s %s -' % (task_id, me))
    if millis:
        time.sleep(millis / 1000)
    append('end %s %s -' % (task_id, me))


def _call(name, args, kwargs):
    # Bytes are not JSON; what matters is that they arrived as bytes.
    append('call %s %s' % (name, json.dumps(
        {'args': list(args), 'kwargs': kwargs}, default=lambda v: {'bytes': v.hex()}, sort_keys=True)))


def record(*args, **kwargs):
    """Notes its arguments."""
    _call('record', args, kwargs)


def add(a, b):
    """The function of the package's own README."""
    _call('add', (a, b), {})
    return a + b


_failures = {}


def fail_times(key, n):
    """Notes each call and raises in the first n calls with the key."""
    seen = _failures[key] = _failures.get(key, 0) + 1
    _call('fail_times', (key, seen), {})
    if seen <= n:
        raise ValueError('call %d of %s' % (seen, key))
