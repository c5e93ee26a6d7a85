#!/usr/bin/env python
"""Reads what Go keeps of tasks, and keeps something for Go to read, as docs/PROTOCOL.md says.

results.py --url redis://localhost:6379/0 --queue jobs read ID # one line of JSON: what is kept of a task results.py
--url redis://localhost:6379/0 --queue jobs keep ID JSON # ends claim 1-1 of worker py with that result
"""

import argparse
import json
import time

import msgpack

import common
from godelayed.scripts import script


def read(conn, args):
    info = msgpack.unpackb(conn.hget(args.queue + '_results', args.id))
    info['result'] = msgpack.unpackb(info['result'])
    info['due'] = int(conn.zscore(args.queue + '_completed', args.id))
    print(json.dumps(info))


def keep(conn, args):
    complete = conn.register_script(script('complete').source)
    now = time.time_ns() // 1_000_000
    result = msgpack.packb(json.loads(args.value))
    info = msgpack.packb({'reason': 'completed', 'at': now, 'function': 'py:task', 'result': result})
    keys = ['_processing:py', '_claims:py', '_completed', '_results', '_locks', '_stats:20250102', '_revoked']
    ended = '%s_ended:%s' % (args.queue, args.id)
    answers = complete([args.queue + key for key in keys], [60, 1, 1, '1-1', args.id, 60_000, info, '', ended])
    print(json.dumps(answers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser('read')
    command.set_defaults(run=read)
    command.add_argument('id')
    command = commands.add_parser('keep')
    command.set_defaults(run=keep)
    command.add_argument('id')
    command.add_argument('value')
    args = parser.parse_args()
    args.run(common.connect(args), args)


if __name__ == '__main__':
    main()
