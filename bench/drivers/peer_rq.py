"""RQ with a SimpleWorker, which runs tasks in its own process, one at a time; the variant "fork" has its default
worker, which forks for each task.

Results are not kept.
"""

import redis
import rq

calls = None


def noop(number, text):
    calls.called(number, text)


class Peer:
    processes = 1

    def __init__(self, address, variant):
        self._class = rq.Worker if variant == "fork" else rq.SimpleWorker
        self.inside = variant != "fork"
        host, _, port = address.rpartition(":")
        self._redis = redis.Redis(host=host, port=int(port))
        self._queue = rq.Queue("bench", connection=self._redis)

    def enqueue(self, number, text):
        self._queue.enqueue(noop, number, text, result_ttl=0)

    def enqueue_many(self, number, texts):
        self._queue.enqueue_many([rq.Queue.prepare_data(noop, (number, text), result_ttl=0) for text in texts])

    def work(self, concurrency, calls_of_worker):
        global calls
        calls = calls_of_worker
        if concurrency != 1:
            raise ValueError(f"a worker of RQ runs one task at a time, asked for {concurrency}")
        worker = self._class([self._queue], connection=self._redis)
        calls.pass_gate()
        worker.work(logging_level="ERROR")
