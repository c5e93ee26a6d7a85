"""Runs a call of a coroutine function, which can be told to end while it waits, beside others on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..outcomes import INTERRUPTS


class Coroutine:
    """One call of a coroutine function.

    The event loop would catch and log an exception that a signal handler raises in the loop's own code, and the
    coroutine would never see it. So interrupt raises only in the coroutine's code, and cancels the coroutine otherwise.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.why: str | None = None  # why it was told to end; None if it was not
        self._coroutine: Any = None  # once it has started
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the coroutine with these arguments in this asyncio task and returns its result.

        If it was cancelled because of interrupt, the error is the TaskInterrupted.
        """
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            if self.why:
                raise INTERRUPTS[self.why](self.why)
            self._coroutine = self._call(*args, **kwargs)
            return await self._coroutine
        except asyncio.CancelledError as e:
            if self.why:  # with the traceback, which says where the coroutine was
                raise INTERRUPTS[self.why](self.why).with_traceback(e.__traceback__) from None
            raise
        finally:
            self._task = None

    def interrupt(self, why: str, frame: FrameType | None = None) -> None:
        """Tells the coroutine to end. frame is what the caller's thread is running."""
        self.why = why
        if self._loop is None or self._task is None:
            return  # either run will see why, or nothing is left to end
        own = getattr(self._coroutine, 'cr_frame', None)
        while frame is not None:
            if frame is own:
                raise INTERRUPTS[why](why)
            frame = frame.f_back
        with contextlib.suppress(RuntimeError):  # the loop was closed just now
            self._loop.call_soon_threadsafe(self._cancel, self._task)

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        if self._task is task:
            task.cancel()
