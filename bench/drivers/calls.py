"""What the handlers of all processes of a worker report to."""

import itertools
import os
import select
import struct
import threading
import time

AGE = struct.Struct("<d")  # of a task at the entry of its handler, in µs


class Calls:
    """Counts handler calls across processes, holds the processes back until all have started, and notices when the last
    task has run.

    It is made before the worker forks. Each call appends its task's age to one file in memory: the kernel keeps appends
    of several processes apart, and the position after an append is the number of calls so far. That takes two system
    calls for each task, and no lock.

    If all tasks run inside the worker's own process, a counter that threads can share is enough.
    """

    def __init__(self, n, processes, latency, inside=False):
        self._n, self._processes, self._latency = n, processes, latency
        self._count = itertools.count(1) if inside and not latency else None
        self._news, self._tell = os.pipe()
        self._gate, self._open = os.pipe()
        self._ages = os.memfd_create("ages")
        self._own = threading.local()

    # In the worker's processes.

    def pass_gate(self):
        """Waits for open_gate. Each of the worker's processes calls it once, just before it would take tasks."""
        os.write(self._tell, b"up\n")
        os.read(self._gate, 1)

    def called(self, number, text):
        """Handlers call it for each task."""
        if type(number) is not int or type(text) is not str:
            os.write(self._tell, f"error expected an int and a str, found {number!r:.99} and {text!r:.99}\n".encode())
            return
        if self._count is not None:
            if next(self._count) == self._n:
                os.write(self._tell, f"last {time.monotonic_ns()}\n".encode())
            return
        age = (time.time_ns() - number) / 1000 if self._latency else 0
        file = getattr(self._own, "file", None)
        if file is None:  # each thread of each process has a position of its own
            file = self._own.file = os.open(f"/proc/self/fd/{self._ages}", os.O_WRONLY | os.O_APPEND)
        os.write(file, AGE.pack(age))
        if os.lseek(file, 0, os.SEEK_CUR) == self._n * AGE.size:
            os.write(self._tell, f"last {time.monotonic_ns()}\n".encode())

    # In the process that exchanges requests with bench.

    def wait_for_processes(self):
        for _ in range(self._processes):
            self._wait("up", 60)

    def open_gate(self):
        os.write(self._open, b"." * self._processes)

    def wait_for_last(self, limit):
        """Returns the monotonic time in ns of the n-th call."""
        return int(self._wait("last", limit))

    def latencies(self):
        if not self._latency:
            return []
        return [age for (age,) in AGE.iter_unpack(os.pread(self._ages, self._n * AGE.size, 0))]

    def _wait(self, what, limit):
        if not select.select([self._news], [], [], limit)[0]:
            ran = os.fstat(self._ages).st_size // AGE.size if self._count is None else next(self._count) - 1
            raise TimeoutError(
                f"waited {limit} s for {what!r} of the worker's processes; {ran} of {self._n} tasks were run"
            )
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._news, 1)
        word, _, rest = line.decode().strip().partition(" ")
        if word != what:
            raise RuntimeError(
                rest if word == "error" else f"expected {what!r} of the worker's processes, found {word!r}"
            )
        return rest
