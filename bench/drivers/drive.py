"""Produces or works for one Python peer, as a driver of bench: drive.py PEER ADDRESS, or drive.py --version PEER.

Requests come on stdin and answers go to stdout, a JSON object a line; driver.go says what they mean. Peers print to
stdout and fork, so the answers have a descriptor of their own and everything else that is printed goes to stderr. The
process and all that it has started are killed as soon as stdin ends: nothing is left when bench itself is killed.
"""

import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import queue
import signal
import sys
import threading
import time
import traceback

from calls import Calls

PEERS = {  # and the distributions whose version they have
    "celery": "celery",
    "celery-defaults": "celery",
    "celery-solo": "celery",
    "celery-threads": "celery",
    "dramatiq": "dramatiq",
    "dramatiq-threads": "dramatiq",
    "godelayed": "godelayed",
    "godelayed-extended": "godelayed",
    "godelayed-processes": "godelayed",
    "keakon": "delayed",
    "rq": "rq",
    "rq-fork": "rq",
}
LIMIT = 600  # seconds for a worker to run its tasks


class Conversation:
    """Requests from stdin and answers to stdout."""

    def __init__(self):
        # A process group of its own, whoever started it: at the end, this process and its children are killed.
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        self._requests = queue.SimpleQueue()
        self._in = os.dup(0)
        self._out = os.dup(1)
        os.dup2(2, 1)
        sys.excepthook = self._fail
        threading.excepthook = lambda failed: self._fail(failed.exc_type, failed.exc_value, failed.exc_traceback)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        rest = b""
        while data := os.read(self._in, 65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._requests.put(line)
        os.killpg(0, signal.SIGKILL)

    def request(self):
        return json.loads(self._requests.get())

    def answer(self, **fields):
        data = json.dumps(fields).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]

    def _fail(self, kind, error, trace):
        """Reports an exception that no thread has caught, and ends this process with its children."""
        traceback.print_exception(kind, error, trace)
        sys.stderr.flush()
        self.answer(error=f"{kind.__name__}: {error}")
        os.killpg(0, signal.SIGKILL)


def produce(peer, request):
    """Enqueues as the request asks; returns None when the peer has no such call."""
    n, producers = request["n"], request.get("producers", 0)
    batch, rate = request.get("batch", 0), request.get("rate", 0)
    text = "x" * request.get("size", 0) or "hello-task"
    number = 1_700_000_000_000_000_000
    if producers > 1 or (batch and not peer.enqueue_many):
        return None
    begin, cpu = time.perf_counter(), time.process_time()
    if batch:
        for i in range(0, n, batch):
            peer.enqueue_many(number, [text] * min(batch, n - i))
    elif rate:
        pace(peer, n, rate, text, from_call=producers == 1)
    else:
        for _ in range(n):
            peer.enqueue(number, text)
    return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}


def pace(peer, n, rate, text, from_call):
    """Enqueues at fixed times.

    A call that takes too long delays the next ones, but their tasks carry the time when they were due, unless they
    should carry the time of the call.
    """
    start = time.time_ns()
    for i in range(n):
        due = start + int(i / rate * 1e9)
        wait = due - time.time_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        peer.enqueue(time.time_ns() if from_call else due, text)


def supervise(conversation, calls):
    """Starts the clock when the worker's processes are up, and answers when the last task has run."""
    calls.wait_for_processes()
    cpu, begin = group_cpu(), time.monotonic_ns()
    calls.open_gate()
    conversation.answer(ready=True)
    end = calls.wait_for_last(LIMIT)
    conversation.answer(seconds=(end - begin) / 1e9, cpu=group_cpu() - cpu, latencies=calls.latencies())


def work(conversation, peer, request):
    calls = Calls(request["n"], peer.processes, request.get("latency", False), inside=peer.inside)
    # The worker has the main thread, because it handles signals.
    threading.Thread(target=supervise, args=(conversation, calls), daemon=True).start()
    peer.work(request["concurrency"], calls)
    raise RuntimeError("the worker has ended by itself; its messages are on stderr")


def group_cpu():
    """User and system seconds of this process and its children, from Linux; 0 elsewhere."""
    ticks, group = 0, str(os.getpgrp())
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if fields[2] == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--version" and sys.argv[2] in PEERS:
        print(importlib.metadata.version(PEERS[sys.argv[2]]), "on Python", platform.python_version())
        return
    if len(sys.argv) != 3 or sys.argv[1] not in PEERS:
        peers = ", ".join(PEERS)
        sys.exit(f"drive.py: expected a peer ({peers}) and the address of a Redis server, found {sys.argv[1:]}")
    # Only forked processes inherit the worker's state, such as the pipes of Calls.
    multiprocessing.set_start_method("fork")
    name, _, variant = sys.argv[1].partition("-")
    conversation = Conversation()
    peer = importlib.import_module(f"peer_{name}").Peer(sys.argv[2], variant)
    while True:
        request = conversation.request()
        match request["op"]:
            case "enqueue":
                conversation.answer(**(produce(peer, request) or {"none": True}))
            case "work":
                work(conversation, peer, request)
            case op:
                raise ValueError(f"expected op enqueue or work, found {op!r}")


if __name__ == "__main__":
    main()
