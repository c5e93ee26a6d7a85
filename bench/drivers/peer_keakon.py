"""keakon's package delayed: one task at a time, in the worker's process."""

import redis
from delayed.delay import delayed
from delayed.queue import Queue
from delayed.worker import Worker

calls = None


def noop(number, text):
    calls.called(number, text)


class Peer:
    processes = 1
    inside = True
    enqueue_many = None  # it has no call for many tasks

    def __init__(self, address, variant):
        host, _, port = address.rpartition(":")
        self._queue = Queue("bench", redis.Redis(host=host, port=int(port)))
        delayed(self._queue)(noop)

    def enqueue(self, number, text):
        noop.delay(number, text)

    def work(self, concurrency, calls_of_worker):
        global calls
        calls = calls_of_worker
        if concurrency != 1:
            raise ValueError(f"keakon's worker runs one task at a time, asked for {concurrency}")
        calls.pass_gate()
        Worker(self._queue).run()
