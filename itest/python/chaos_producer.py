#!/usr/bin/env python
"""Enqueues tasks for Go and Python in turn until SIGTERM, and notes in the ledger which of them Redis has accepted.

    DELAYED_LEDGER=/tmp/ledger chaos_producer.py --url redis://localhost:6379/0 --queue jobs --package keakon --prefix k

The ids of the tasks are the prefix and six digits.
"""

import argparse
import signal
import time

import common
from interop_tasks import append

GO, PYTHON = 'interop.Touch', 'interop_tasks:touch'


def of_keakon(args):
    """Returns the function that enqueues a task with the real package."""
    from delayed.task import GoTask, PyTask

    queue = common.open_queue(args, common.connect(args))
    return lambda path, *values: queue.enqueue((GoTask if path == GO else PyTask)(path, values))


def of_godelayed(args):
    """Returns the function that enqueues a task with the package of this tree."""
    import godelayed

    return godelayed.Queue(args.queue, common.connect(args), legacy=True).delay


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--package', required=True, choices=('keakon', 'godelayed'))
    parser.add_argument('--prefix', required=True, help='put before the number to make the id of a task')
    parser.add_argument('--first', type=int, default=0, help='number of the first task')
    parser.add_argument('--pace', type=float, default=0.01, metavar='SECONDS', help='between two tasks; 0.01')
    args = parser.parse_args()
    enqueue = {'keakon': of_keakon, 'godelayed': of_godelayed}[args.package](args)
    told = []
    signal.signal(signal.SIGTERM, lambda signum, frame: told.append(signum))
    print('ready', flush=True)
    i = args.first
    while not told:
        task_id = '%s%06d' % (args.prefix, i)
        enqueue((GO, PYTHON)[i % 2], task_id, 1 + i % 12)
        append('sent', task_id)
        i += 1
        time.sleep(args.pace)


if __name__ == '__main__':
    main()
