"""The Python package of this repository.

Its worker runs tasks in a thread of its own process here; the variant "processes" is a worker with default settings,
which has a process for each task that runs at once. The variant "extended" has messages with an id, a number of
arguments and a time, which the package's options need.
"""

import godelayed
import redis

calls = None


@godelayed.task
def noop(number, text):
    calls.called(number, text)


class Peer:
    def __init__(self, address, variant):
        host, _, port = address.rpartition(":")
        self._redis = redis.Redis(host=host, port=int(port))
        self._queue = godelayed.Queue("bench", self._redis, legacy=variant != "extended")
        self.inside = variant != "processes"
        self.processes = 1 if self.inside else 2

    def enqueue(self, number, text):
        self._queue.delay(noop, number, text)

    def enqueue_many(self, number, texts):
        self._queue.delay_many([godelayed.call(noop, number, text) for text in texts])

    def work(self, concurrency, calls_of_worker):
        global calls
        calls = calls_of_worker
        worker = godelayed.Worker(
            self._redis, "bench", concurrency=concurrency, processes=not self.inside, start=calls.pass_gate
        )
        worker.run()
