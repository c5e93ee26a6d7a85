"""Calls a registered function and finds out how the call ended."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import traceback
from typing import Any

from .. import context as contexts
from .. import middleware
from ..errors import ArgumentsError
from ..link import run
from ..outcomes import Archive, Drop, Outcome, RetryIn, Snooze, TaskInterrupted, said
from ..registry import Function
from ..values import MAX_BYTES, Plain, pack
from .coroutine import Coroutine
from .info import tail
from .judge import DONE, Ended

_OWN = os.path.dirname(__file__) + os.sep  # files whose frames are left out of tracebacks
_SAYS: dict[type[Outcome], str] = {Archive: 'discard', Drop: 'drop', RetryIn: 'retry', Snooze: 'snooze'}


def call(
    function: Function, args: list[Any], kwargs: dict[str, Any], keep: bool, context: contexts.Context | None
) -> Ended:
    """Calls a function for a task. keep: whether the result is needed. Any exception except TaskInterrupted is a
    failure."""
    if function.coroutine:  # isolated, or registered after the worker was made, which has no event loop for it
        return asyncio.run(call_coroutine(function, args, kwargs, keep, context, Coroutine(function.call)))
    return run(call_coroutine(function, args, kwargs, keep, context, None))


async def call_coroutine(
    function: Function,
    args: list[Any],
    kwargs: dict[str, Any],
    keep: bool,
    context: contexts.Context | None,
    coroutine: Coroutine | None,
) -> Ended:
    """Is call for a coroutine function, in this asyncio task. coroutine is to run it; without one, the function is
    called."""
    contexts.enter(context)
    result: Any = None  # unless middleware swallows an error
    read = False
    try:
        args, kwargs = function.parameters.restored(args, kwargs)
        read = True
        with middleware.surround(middleware.tasks, context):
            result = function.call(*args, **kwargs) if coroutine is None else await coroutine.run(*args, **kwargs)
    except BaseException as e:
        return _failed(function, args, kwargs, e, read)
    finally:
        contexts.enter(None)
    if not keep:
        return DONE
    try:
        return Ended(result=_packed(function, result))
    except ArgumentsError as e:
        return Ended(fault=str(e))
    except Exception as e:  # such as an error of a property of the result
        return Ended(fault=f'{function.path}: the result cannot be packed: {type(e).__name__}')


def _packed(function: Function, result: Any) -> bytes:
    packed = pack(Plain(function.path, keys=False).value(result, 'the result', 0))
    if len(packed) > MAX_BYTES:
        raise ArgumentsError(f'{function.path}: a result of {len(packed):,} bytes, expected at most {MAX_BYTES:,}')
    return packed


def _failed(function: Function, args: list[Any], kwargs: dict[str, Any], e: BaseException, read: bool) -> Ended:
    ended = Ended(ok=False, error=_text(e))
    with contextlib.suppress(Exception):  # the error's own methods may raise
        ended.stack = _stack(e)
    if isinstance(e, TaskInterrupted):
        return ended
    outcome = said(e)
    if outcome is not None:
        ended.says = next((word for kind, word in _SAYS.items() if isinstance(outcome, kind)), '')
        ended.wait = getattr(outcome, 'milliseconds', 0)
    elif not read or isinstance(e, TypeError) and not _fits(function, args, kwargs):
        ended.arguments = True
    return ended


def _stack(e: BaseException) -> str:
    """Returns the end of the traceback, which names no argument's value: only the texts of errors may do so."""
    told = traceback.TracebackException(type(e), e, e.__traceback__)
    told.stack = traceback.StackSummary.from_list([f for f in told.stack if not f.filename.startswith(_OWN)])
    return tail(''.join(told.format()))


def _text(e: BaseException) -> str:
    try:
        text = str(e)
    except Exception as faulty:
        text = f'(its text failed: {type(faulty).__name__})'
    name = type(e).__name__
    return f'{name}: {text}' if text else name


def _fits(function: Function, args: list[Any], kwargs: dict[str, Any]) -> bool:
    try:
        signature = inspect.signature(function.call)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True
