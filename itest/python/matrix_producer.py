#!/usr/bin/env python
"""Delays tasks as it is told: one order of JSON on each line of its input, one answer of JSON on each line of file
descriptor 3.

    matrix_producer.py --url redis://localhost:6379/0 --queue jobs --package keakon --worker go

Arguments that are {"bytes": "00ff"} are bytes.
"""

import argparse
import json
import os
import sys

import common


def untag(value):
    if isinstance(value, list):
        return [untag(v) for v in value]
    if isinstance(value, dict):
        if set(value) == {'bytes'}:
            return bytes.fromhex(value['bytes'])
        return {k: untag(v) for k, v in value.items()}
    return value


class Keakon:
    """The real package."""

    def __init__(self, args):
        self.queue = common.open_queue(args, common.connect(args))
        self.go = args.worker == 'go'

    def delay(self, function, args, retry=0):
        from delayed.task import GoTask, PyTask

        if self.go:
            self.queue.enqueue(GoTask('matrix.' + function, args))
        else:
            self.queue.enqueue(PyTask('matrix_tasks:' + function, args, retry=retry))
        return {}


class Ours:
    """The package of this repository."""

    def __init__(self, args):
        import godelayed

        self.package = godelayed
        plain = args.worker == 'keakon'
        self.queue = godelayed.Queue(args.queue, common.connect(args), legacy=plain)
        self.prefix = 'matrix.' if args.worker == 'go' else 'matrix_tasks:'

    def delay(self, function, args, **options):
        try:
            return {'id': self.queue.options(**options).delay(self.prefix + function, *args).id}
        except self.package.DuplicateError as e:
            return {'conflict': e.id}

    def result(self, id):
        try:
            return {'value': self.queue.ref(id).result(timeout=60)}
        except self.package.DelayedError as e:
            return {'error': str(e)}

    def cancel(self, id):
        self.queue.ref(id).cancel()
        return {}


def answer(producer, order):
    op = order.pop('op')
    if op == 'delay':
        order['args'] = untag(order.get('args', []))
        if order.pop('no_retry', False):
            order['retry'] = 0
    return getattr(producer, op)(**order)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--package', required=True, choices=['keakon', 'godelayed'])
    parser.add_argument('--worker', required=True, choices=['go', 'keakon', 'godelayed'])
    args = parser.parse_args()
    producer = {'keakon': Keakon, 'godelayed': Ours}[args.package](args)
    with os.fdopen(3, 'w') as answers:
        for line in sys.stdin:
            print(json.dumps(answer(producer, json.loads(line))), file=answers, flush=True)


if __name__ == '__main__':
    main()
