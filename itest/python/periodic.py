#!/usr/bin/env python
"""Writes a periodic entry with our package, one that may tick more often than programs can ask for.

    periodic.py --url redis://localhost:6379/0 --queue jobs --name often --every 50ms
"""

import argparse

import godelayed
import redis
from godelayed.link import run
from godelayed.options import Options
from godelayed.worker.agenda import Agenda
from godelayed.worker.entries import Definition, template


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('--url', '--queue', '--name', '--every'):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    queue = godelayed.Queue(args.queue, redis.Redis.from_url(args.url))
    message, relative = template(godelayed.call('interop:tick'), Options(), False, 0)
    definition = Definition('@every ' + args.every, relative=relative, message=message)
    agenda = Agenda(queue._settings, queue._link)
    run(agenda.change(args.name, lambda r, now: r.define(definition, now), create=True))


if __name__ == '__main__':
    main()
