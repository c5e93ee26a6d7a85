#!/usr/bin/env python
"""Runs the real package's sweeper on one or more queues.

    sweeper.py --url redis://localhost:6379/0 --queue jobs jobs_py --interval 0.02 --sweeps 500

Prints "ready" before the first pass. Ends after --sweeps passes, or with SIGTERM, and prints two numbers: passes that
succeeded and tasks and notifications put back in them.
"""

import argparse
import logging
import signal

from delayed.logger import setup_logger
from delayed.queue import Queue
from delayed.sweeper import Sweeper

import common


class Counter:
    """Counts passes over all queues and stops the sweeper after the last one wanted."""

    def __init__(self, queues, limit):
        self.done = dict.fromkeys(queues, 0)
        self.limit = limit
        self.put_back = 0
        self.sweeper = None

    @property
    def passes(self):
        return min(self.done.values())

    def swept(self, name, count):
        self.done[name] += 1
        self.put_back += max(count, 0)
        if self.limit and self.passes >= self.limit:
            self.sweeper.stop()


class CountedQueue(Queue):
    """A queue that reports each successful sweep."""

    counter = None

    def requeue_lost(self):
        count = super().requeue_lost()
        self.counter.swept(self._name, count)
        return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser, nargs='+')
    parser.add_argument('--interval', type=float, default=60, metavar='SECONDS', help='between two passes; 60')
    parser.add_argument(
        '--sweeps', type=int, default=0, metavar='N', help='end after N passes over every queue; 0: never'
    )
    args = parser.parse_args()

    setup_logger(log_level=logging.WARNING)
    conn = common.connect(args)
    counter = CountedQueue.counter = Counter(args.queue, args.sweeps)
    queues = [common.open_queue(args, conn, name, cls=CountedQueue) for name in args.queue]
    sweeper = counter.sweeper = Sweeper(queues, interval=args.interval)
    signal.signal(signal.SIGTERM, lambda signum, frame: sweeper.stop())
    print('ready', flush=True)
    sweeper.run()
    print(counter.passes, counter.put_back, flush=True)


if __name__ == '__main__':
    main()
