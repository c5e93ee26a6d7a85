"""Runs a call of a coroutine function, which can be told to end while it waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..outcomes import INTERRUPTS


class Coroutine:
    """Runs one coroutine in an event loop of its own.

    The event loop would catch and log an exception that a signal handler raises in the loop's own code, and the
    coroutine would never see it. So interrupt raises only in the coroutine's code, and cancels the coroutine otherwise.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._why = ''  # why it was told to end; '' if it was not
        self._coroutine: Any = None  # once it has started
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> Any:
        """Runs the coroutine and returns its result.

        If it was cancelled because of interrupt, the error is the TaskInterrupted.
        """
        try:
            return asyncio.run(self._main())
        except asyncio.CancelledError:
            if self._why:
                raise INTERRUPTS[self._why](self._why) from None
            raise

    async def _main(self) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._why:
            raise INTERRUPTS[self._why](self._why)
        self._coroutine = self._call()
        return await self._coroutine

    def interrupt(self, why: str, frame: FrameType | None) -> None:
        """Tells the coroutine to end. frame is what the caller's thread is running."""
        self._why = why
        if self._loop is None or self._task is None or self._task.done():
            return  # either _main will see _why, or nothing is left to end
        own = getattr(self._coroutine, 'cr_frame', None)
        while frame is not None:
            if frame is own:
                raise INTERRUPTS[why](why)
            frame = frame.f_back
        with contextlib.suppress(RuntimeError):  # the loop was closed just now
            self._loop.call_soon_threadsafe(self._task.cancel)
