"""A process that runs tasks, without its worker."""

import asyncio
import contextlib
import signal
import socket

import pytest

from godelayed.worker import child


@pytest.mark.parametrize('coroutines', [False, True])
def test_a_process_that_nobody_needs_any_more_ends_without_a_word(monkeypatch, coroutines):
    """The worker has stopped while the process was starting."""
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, 'new_event_loop', lambda: loop)
    monkeypatch.setattr(signal, 'signal', lambda *_: None)
    tasks, theirs = socket.socketpair()
    orders, obeyed = socket.socketpair()
    with tasks, theirs, orders, obeyed, contextlib.closing(loop):
        assert child.serve(theirs, obeyed, signal.SIGUSR1, tasks.close, coroutines) == 0
    asyncio.set_event_loop(None)
