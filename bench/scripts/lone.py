#!/usr/bin/env python3
"""Measures one thread that calls `delay`, alone and beside other programs on the same machine (Linux, 45 s).

    .venv/bin/python bench/scripts/lone.py

For comparison it measures RPUSH of redis-py and a bare LLEN over a socket, in the same places. Beside the rates stands
how long, for each call, the producer and Redis were ready to run while other programs had the processors, as the kernel
counts it. Idle programs of the lowest priority keep processors awake, because one that sleeps wakes slowly in a virtual
machine. Needs redis-server, chrt and nice.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis

import godelayed

SECONDS = 1.5  # of each measurement
BACKLOG = 250_000  # more tasks than a worker runs meanwhile
THREADS = '--processes', '0', '--concurrency', '1'
PROCESSES = '--concurrency', '2'
TASKS = """
import godelayed


@godelayed.task
def count(n: int, text: str) -> None:
    pass
"""


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def waited(pid):
    """Returns for how many ns the threads of a process were ready to run and did not run."""
    tasks = Path(f'/proc/{pid}/task').iterdir()
    return sum(int((task / 'schedstat').read_text().split()[1]) for task in tasks)


@contextlib.contextmanager
def running(*command, **how):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def spinning(n, *prefix):
    """Runs n programs that only compute."""
    stack = contextlib.ExitStack()
    for _ in range(n):
        stack.enter_context(running(*prefix, sys.executable, '-c', 'while True: pass'))
    return stack


class Lone:
    """The producer, its server, and a folder with the module of the task."""

    def __init__(self, folder, server, port):
        self.folder, self.server, self.port = folder, server, port
        sys.path.insert(0, folder)
        from counting import count

        self.count = count
        self.client = redis.Redis(port=port)
        self.queue = godelayed.Queue('lone', self.client)
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def delay(self):
        self.queue.delay(self.count, 1, 'x')

    def push(self):
        self.client.rpush('raw', b'x' * 60)

    def ask(self):
        self.socket.sendall(b'*2\r\n$4\r\nLLEN\r\n$3\r\nraw\r\n')
        self.socket.recv(100)

    def worker(self, queue, how, *prefix):
        """Runs a worker, and waits until it has begun."""
        url = f'redis://127.0.0.1:{self.port}/0'
        command = (*prefix, sys.executable, '-m', 'godelayed.cli', 'counting', '--redis-url', url, '--queue', queue)
        started = running(*command, *how, cwd=self.folder)
        stack = contextlib.ExitStack()
        before = self.client.llen(queue)
        stack.enter_context(started)
        while before and self.client.llen(queue) == before:
            time.sleep(0.01)
        return stack

    def fill(self):
        """Gives the queue busy a backlog."""
        self.client.delete('busy', 'busy_noti')
        calls = [godelayed.call(self.count, 1, 'x')] * 10_000
        for _ in range(BACKLOG // len(calls)):
            godelayed.Queue('busy', self.client).delay_many(calls)

    def row(self, where, *steps):
        """Prints one line of the table."""
        cells = []
        for step in steps or (self.delay, self.push, self.ask):
            for _ in range(200):
                step()
            pids = os.getpid(), self.server.pid
            waits, took = [waited(pid) for pid in pids], []
            begun = last = time.perf_counter()
            while last - begun < SECONDS:
                step()
                now = time.perf_counter()
                took.append(now - last)
                last = now
            n = len(took)
            cells.append(f'{n / (last - begun):,.0f}')
            if step == self.delay:
                took.sort()
                cells += [f'{took[n // 2] * 1e6:,.0f} µs', f'{took[n * 99 // 100] * 1e6:,.0f} µs']
                cells += [f'{(waited(pid) - was) / n / 1000:,.0f} µs' for pid, was in zip(pids, waits)]
        cells += ['–'] * (7 - len(cells))
        print(f'| {where} | {" | ".join(cells)} |', flush=True)


def main():
    print('| beside | delay/s | median | p99 | producer waits | Redis waits | RPUSH/s | bare LLEN/s |')
    print('|---|---:|---:|---:|---:|---:|---:|---:|')
    port = free_port()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        Path(folder, 'counting.py').write_text(TASKS)
        options = '--port', str(port), '--save', '', '--appendonly', 'no'
        server = stack.enter_context(running('redis-server', *options, cwd=folder))
        stack.enter_context(spinning(os.cpu_count(), 'chrt', '-i', '0'))
        time.sleep(0.5)  # until the server answers
        lone = Lone(folder, server, port)
        lone.row('nothing')
        with spinning(1):
            lone.row('one program that only computes')
        with spinning(2):
            lone.row('two programs that only compute')
        for name, how in (('in threads', THREADS), ('in processes', PROCESSES)):
            lone.fill()
            with lone.worker('busy', how):
                lone.row(f'a worker {name} with a backlog on another queue')
        for name, how, prefix in (
            ('in threads', THREADS, ()),
            ('in threads, started with `nice -n 10`', THREADS, ('nice', '-n', '10')),
            ('in processes', PROCESSES, ()),
        ):
            lone.client.delete('lone', 'lone_noti')
            lone.delay()
            with lone.worker('lone', how, *prefix):
                lone.row(f'a worker of the same queue {name}', lone.delay)


if __name__ == '__main__':
    main()
