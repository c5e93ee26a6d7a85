#!/usr/bin/env python
"""Runs a worker of the package of this tree on a queue until SIGTERM.

    DELAYED_LEDGER=/tmp/ledger matrix_worker.py --url redis://localhost:6379/0 --queue jobs

Prints "ready <id>" before it runs.
"""

import argparse
import signal

import godelayed
import matrix_tasks

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--life', type=float, default=2, metavar='SECONDS', help='of its heartbeat; 2')
    parser.add_argument('--concurrency', type=int, default=2, metavar='N', help='tasks at once; 2')
    parser.add_argument('--legacy', action='store_true', help="share the queue with keakon's workers")
    args = parser.parse_args()
    for name in matrix_tasks.__all__:
        godelayed.task(path='matrix_tasks:' + name)(getattr(matrix_tasks, name))
    worker = godelayed.Worker(
        common.connect(args),
        args.queue,
        concurrency=args.concurrency,
        heartbeat_life=args.life,
        sweep_interval=args.life / 4,
        backoff=lambda retried: 0.02,
        legacy=args.legacy,
    )
    signal.signal(signal.SIGTERM, lambda signum, frame: worker.stop())
    print('ready', worker.id, flush=True)
    worker.run()


if __name__ == '__main__':
    main()
