#!/usr/bin/env python
"""Enqueues tasks with the real package delayed.

    producer.py --url redis://localhost:6379/0 --queue jobs shapes               # one task of every shape
    producer.py --url redis://localhost:6379/0 --queue jobs shapes bare two      # of these shapes
    producer.py --url redis://localhost:6379/0 --queue jobs load --count 1000 --prefix p

Prints one line per enqueued task (shapes: the name of the shape; load: only the last line, the number of tasks) and
exits with 0 when all of them are enqueued.
"""

import argparse
import sys

from delayed.task import GoTask

import common
import shapes


def enqueue_shapes(queue, args, conn):
    known = {**shapes.GO_SHAPES, **shapes.PY_SHAPES}
    names = args.names or [name for name in known if name.startswith(args.only)]
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit('unknown shapes: %s; known are %s' % (', '.join(unknown), ', '.join(known)))
    for name in names:
        if args.queue_per_shape:
            queue = common.open_queue(args, conn, '%s.%s' % (args.queue, name))
        if name in shapes.GO_SHAPES:
            queue.enqueue(shapes.GO_SHAPES[name]())
        else:
            shapes.PY_SHAPES[name](queue)
        print(name, flush=True)


def enqueue_load(queue, args, conn):
    for i in range(args.count):
        queue.enqueue(GoTask(args.go_path, ('%s%d' % (args.prefix, args.first + i), args.millis)))
    print(args.count, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    commands = parser.add_subparsers(dest='command', required=True)

    p = commands.add_parser('shapes', help='one task of each shape named; of all shapes when none is')
    p.add_argument('names', nargs='*', metavar='SHAPE')
    p.add_argument('--only', default='', metavar='PREFIX', help='without names: the shapes whose names begin so')
    p.add_argument('--queue-per-shape', action='store_true', help='on queues named NAME.SHAPE instead of one')
    p.set_defaults(run=enqueue_shapes)

    p = commands.add_parser('load', help='many Go tasks that note their start and end in the ledger')
    p.add_argument('--count', type=int, default=1000)
    p.add_argument('--first', type=int, default=0, help='number of the first task')
    p.add_argument('--prefix', default='t', help='put before the number to make the id of a task')
    p.add_argument('--millis', type=int, default=0, help='how long a task works')
    p.add_argument('--go-path', default='interop.Touch')
    p.set_defaults(run=enqueue_load)

    args = parser.parse_args()
    conn = common.connect(args)
    args.run(common.open_queue(args, conn), args, conn)


if __name__ == '__main__':
    main()
