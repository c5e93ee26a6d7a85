"""Task functions that keakon's worker imports, as a service's own tasks.py would hold them.

What they do is written to a ledger as Go's package itest/ledger reads it: the file <pid>.ledger in the directory that
DELAYED_LEDGER names, one line and one write for each event:

    <nanoseconds> start <id> <worker> -             a task begins; it has no token, the real package knows none
    <nanoseconds> end <id> <worker> -               and ends
    <nanoseconds> call <function> <worker> - <json> the arguments a function was called with
"""

import json
import os
import time

_fd = None


def append(kind, task, detail=''):
    """Appends one event to the ledger."""
    global _fd
    if _fd is None:
        directory = os.environ.get('DELAYED_LEDGER')
        if not directory:
            raise RuntimeError('DELAYED_LEDGER is not set: expected the directory of the ledger')
        _fd = os.open(os.path.join(directory, '%d.ledger' % os.getpid()), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_fd, ('%d %s %s %s - %s\n' % (time.time_ns(), kind, task, worker_name(), detail)).encode())


def worker_name():
    return os.environ.get('DELAYED_WORKER', 'py-%d' % os.getpid())


def touch(task_id, millis=0):
    """Records that it ran; millis is how long it works."""
    append('start', task_id)
    if millis:
        time.sleep(millis / 1000)
    append('end', task_id)


def _call(name, args, kwargs):
    # Bytes are not JSON; what matters is that they arrived as bytes.
    call = {'args': list(args), 'kwargs': kwargs}
    append('call', name, json.dumps(call, default=lambda v: {'bytes': v.hex()}, sort_keys=True))


def note_call(name, *args):
    """Records a call of another function."""
    _call(name, args, {})


def record(*args, **kwargs):
    """Records its arguments."""
    _call('record', args, kwargs)


def add(a, b):
    """The function of the package's own README."""
    _call('add', (a, b), {})
    return a + b


_failures = {}


def fail_times(key, n):
    """Records each call and raises in the first n calls with the key."""
    seen = _failures[key] = _failures.get(key, 0) + 1
    _call('fail_times', (key, seen), {})
    if seen <= n:
        raise ValueError('call %d of %s' % (seen, key))
