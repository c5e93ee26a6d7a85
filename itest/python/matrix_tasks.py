"""The task functions of the matrix of producers and workers. They write the ledger that interop_tasks describes.

keakon's worker imports them; ours runs them because matrix_worker registers them.
"""

import os
import time

from interop_tasks import _call, append, record, touch

__all__ = ['broken', 'fail_times', 'hang_once', 'record', 'total', 'touch']


def _file(name):
    return os.path.join(os.environ['DELAYED_LEDGER'], name)


def fail_times(key, n):
    """Records each call and raises in the first n calls with the key, in whatever process they run."""
    with open(_file('failures of ' + key), 'ab') as f:
        f.write(b'x')
        seen = f.tell()
    _call('fail_times', (key, seen), {})
    if seen <= n:
        raise ValueError('call %d of %s' % (seen, key))


def total(a, b):
    """Returns the sum."""
    return a + b


def broken():
    """Records its call and fails."""
    _call('broken', (), {})
    raise RuntimeError('broken as it should be')


def hang_once(name):
    """Never ends when it is called for the first time."""
    append('start', name)
    try:
        os.close(os.open(_file(name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        append('end', name)
        return
    time.sleep(3600)
