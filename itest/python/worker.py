#!/usr/bin/env python
"""Runs the real package's worker on a queue until SIGHUP, its own signal for stopping, or SIGTERM (a task in hand is
finished).

    DELAYED_LEDGER=/tmp/ledger worker.py --url redis://localhost:6379/0 --queue jobs --name py-1

Prints "ready <id>" when its heartbeat stands. The task functions of interop_tasks are importable. With --events every
wake-up of the worker is noted in a file: "wake" when a notification was popped, "empty" when no task was there for it,
which costs this worker 1 to 60 s of sleep.
"""

import argparse
import logging
import os
import signal

import delayed.worker
import redis
from delayed.constants import SEP
from delayed.logger import logger, setup_logger
from delayed.queue import Queue
from delayed.task import PyTask
from delayed.worker import Worker
from msgpack import unpackb

import common


class CountingRedis(redis.Redis):
    """A client that records the notifications it pops."""

    note = staticmethod(lambda event: None)

    def blpop(self, *args, **kwargs):
        popped = super().blpop(*args, **kwargs)
        if popped:
            self.note('wake')
        return popped


class EmptyWakes(logging.Handler):
    """Records failed claims: the package's script fails on an empty list, and the worker logs that."""

    def __init__(self, note):
        super().__init__(logging.ERROR)
        self.note = note

    def emit(self, record):
        if record.msg == 'Failed to dequeue task.':
            error = record.exc_info[1] if record.exc_info else None
            empty = isinstance(error, redis.ResponseError) and 'must be strings or integers' in str(error)
            self.note('empty' if empty else 'error %r' % error)


class GoQueue(Queue):
    """A queue whose Go tasks are run here, by the function interop_tasks:touch.

    The worker of go-delayed claims and keeps itself alive just as the package's does, so with it the package's worker
    stands in for that one. (The package's worker itself drops a Go task that it claims.)
    """

    def dequeue(self):
        task = super().dequeue()
        if task is not None and SEP not in task._func_path:
            return PyTask('interop_tasks:touch', unpackb(task._args))
        return task


class NamedWorker(Worker):
    """A worker that says when it is ready."""

    def generate_id(self):
        super().generate_id()
        print('ready %d' % self._id, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--name', default='py-%d' % os.getpid(), help='how the ledger calls this worker')
    parser.add_argument(
        '--keep-alive-interval', type=float, default=15, metavar='SECONDS', help='between two heartbeats; 15'
    )
    parser.add_argument('--id-bits', type=int, default=63,
                        help="bits of the worker's id; 63 here, because with the package's 16 two of the many workers "
                             'that a test starts and kills can meet under one id, '
                             "and then the first one's claim is lost")
    parser.add_argument('--run-go', action='store_true', help='run Go tasks too, as a worker of go-delayed would')
    parser.add_argument('--max-sleep', type=float, metavar='SECONDS',
                        help='longest and first sleep after a failed claim, instead of the 60 and 1 of the package')
    parser.add_argument('--events', metavar='FILE', help='where wake-ups are noted')
    parser.add_argument('--verbose', action='store_true', help="print the package's debug log")
    args = parser.parse_args()

    os.environ['DELAYED_WORKER'] = args.name
    setup_logger(log_level=logging.DEBUG if args.verbose else logging.WARNING)
    if args.events:
        fd = os.open(args.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

        def note(event):
            os.write(fd, (event + '\n').encode())

        CountingRedis.note = staticmethod(note)
        logger.addHandler(EmptyWakes(note))
    if args.max_sleep is not None:
        delayed.worker.DEFAULT_SLEEP_TIME = delayed.worker.MAX_SLEEP_TIME = args.max_sleep

    conn = common.connect(args, CountingRedis)
    queue = common.open_queue(args, conn, cls=GoQueue if args.run_go else Queue)
    worker = NamedWorker(queue, keep_alive_interval=args.keep_alive_interval, id_bits=args.id_bits)
    signal.signal(signal.SIGTERM, lambda signum, frame: worker.stop())
    worker.run()


if __name__ == '__main__':
    main()
