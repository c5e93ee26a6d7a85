#!/usr/bin/env python
"""Asks for tasks that are too large, and says by how many bytes the process has grown meanwhile.

    inspect_large.py --url redis://localhost:6379/0 --queue jobs --tasks 18
"""

import argparse

import godelayed

import common


def memory(name):
    with open('/proc/self/status') as status:
        for line in status:
            if line.startswith(name + ':'):
                return int(line.split()[1]) << 10
    raise SystemExit(f'no {name} in /proc/self/status')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_queue_arguments(parser)
    parser.add_argument('--tasks', type=int, required=True)
    args = parser.parse_args()
    queue = godelayed.Queue(args.queue, common.connect(args))
    queue.ref('nobody').state()
    before = memory('VmRSS')
    for i in range(args.tasks):
        ref = queue.ref(f't{i}')
        info = ref.info()
        assert (info.state, info.reason) == (godelayed.State.ARCHIVED, 'too large'), info
        try:
            ref.run_again()
        except godelayed.DelayedError as e:
            assert 'cannot run again' in str(e), e
        else:
            raise SystemExit('it runs again')
        queue.ref(f's{i}').cancel()
        ref.delete()
    assert queue.ref('nobody').state() is godelayed.State.UNKNOWN
    print('grown', memory('VmHWM') - before, flush=True)


if __name__ == '__main__':
    main()
