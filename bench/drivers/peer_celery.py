"""Celery with Redis: a prefork pool, acknowledging late.

The others acknowledge before the task runs, as its defaults are: "defaults" with that pool, "solo" and "threads" with
tasks inside of the worker's process.

Results are not kept. The worker does without gossip, mingle and heartbeat, which are for several workers.
"""

import warnings

import celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_ready


class Peer:
    processes = 1  # that pass the gate: the pool's processes have been forked by then
    enqueue_many = None  # Celery has no call for many tasks

    def __init__(self, address, variant):
        self._app = celery.Celery("bench", broker=f"redis://{address}/0")
        self._app.conf.task_ignore_result = True
        self._app.conf.task_acks_late = variant == ""
        self._pool = variant if variant in ("solo", "threads") else "prefork"
        self.inside = self._pool != "prefork"
        self._calls = None

        @self._app.task(name="noop")
        def noop(number, text):
            self._calls.called(number, text)

        self._task = noop

    def enqueue(self, number, text):
        self._task.delay(number, text)

    def work(self, concurrency, calls):
        self._calls = calls

        # Sent when the pool is up and before the first task is asked for.
        @worker_ready.connect(weak=False)
        def pass_gate(**_):
            calls.pass_gate()

        warnings.simplefilter("ignore", SecurityWarning)  # bench may be run by root
        self._app.worker_main([
            "--quiet", "worker", f"--pool={self._pool}", f"--concurrency={concurrency}", "--loglevel=ERROR",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ])  # fmt: skip
