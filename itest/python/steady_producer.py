#!/usr/bin/env python
"""Enqueues tasks with the package of this tree until SIGTERM, goes on after errors, and notes in the ledger which of
them Redis has accepted.

    DELAYED_LEDGER=/tmp/ledger steady_producer.py --url redis://localhost:6379/0 --queue jobs --prefix p
"""

import argparse
import signal
import time

import godelayed

import common
from interop_tasks import append


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--prefix', required=True, help='put before the number to make the id of a task')
    args = parser.parse_args()
    queue = godelayed.Queue(args.queue, common.connect(args))
    told = []
    signal.signal(signal.SIGTERM, lambda signum, frame: told.append(signum))
    print('ready', flush=True)
    i = 0
    while not told:
        task_id = '%s%06d' % (args.prefix, i)
        try:
            queue.delay('matrix_tasks:touch', task_id, 1)
        except godelayed.DelayedError as error:
            print('refused', error, flush=True)
        else:
            append('sent', task_id)
        i += 1
        time.sleep(0.005)


if __name__ == '__main__':
    main()
