"""dramatiq with Redis as its command line starts it: here two processes of threads, with the default middleware.

The variant "threads" has a worker of threads in one process.
"""

import threading

import dramatiq
import dramatiq.cli
from dramatiq.brokers.redis import RedisBroker


class Gate(dramatiq.Middleware):
    """Holds each process back until all are up."""

    def __init__(self, calls):
        self._calls = calls

    def before_worker_boot(self, broker, worker):
        self._calls.pass_gate()


class Peer:
    processes = 2  # of concurrency / 2 threads: the command line's default on two cores is 2 of 8
    enqueue_many = None  # dramatiq has no call for many tasks

    def __init__(self, address, variant):
        self.inside = variant == "threads"
        if self.inside:
            self.processes = 1
        dramatiq.set_broker(RedisBroker(url=f"redis://{address}/0"))
        self._calls = None

        @dramatiq.actor
        def noop(number, text):
            self._calls.called(number, text)

        self._actor = noop

    def enqueue(self, number, text):
        self._actor.send(number, text)

    def work(self, concurrency, calls):
        if concurrency % self.processes:
            raise ValueError(f"expected a concurrency that {self.processes} processes can share, found {concurrency}")
        self._calls = calls
        if self.inside:
            calls.pass_gate()
            dramatiq.Worker(dramatiq.get_broker(), worker_threads=concurrency).start()
            threading.Event().wait()
        dramatiq.get_broker().add_middleware(Gate(calls))
        # The module's name only says where the broker is: it is the one set above, which the processes inherit.
        threads = concurrency // self.processes
        args = [__name__, f"--processes={self.processes}", f"--threads={threads}", "--skip-logging"]
        dramatiq.cli.main(dramatiq.cli.make_argument_parser().parse_args(args))
