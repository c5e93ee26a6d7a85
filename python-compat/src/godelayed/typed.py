"""The base of modules made by godelayed.stubs: Go functions with the parameters and results of their declarations."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

import msgpack

from . import aio, queue, ref
from .errors import ArgumentsError, DelayedError
from .task import Call
from .times import Seconds

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:
    from typing_extensions import ParamSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OptionValues

__all__ = ['ABSENT', 'AsyncFunction', 'AsyncRef', 'Function', 'Ref']

P = ParamSpec('P')
R = TypeVar('R')

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Absent:
    def __repr__(self) -> str:
        return 'ABSENT'


ABSENT: Any = _Absent()
"""The default of a parameter that is not sent unless the caller gives an argument for it.

It is not a value: passing it is an error.
"""


class _Declared:
    """The signature and the types of a declaration, read once."""

    def __init__(self, declaration: Callable[..., Any]) -> None:
        self.declaration = declaration
        self.signature = inspect.signature(declaration)
        parameters = list(self.signature.parameters.values())
        self.fixed = sum(p.kind in _POSITIONAL for p in parameters)
        self.least = sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
        self.variadic = len(parameters) > self.fixed

    @functools.cached_property
    def returns(self) -> Any:
        return typing.get_type_hints(self.declaration).get('return', Any)

    def arguments(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the arguments in their order. Raises ArgumentsError if there are too few or too many."""
        if kwargs:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as e:
                raise ArgumentsError(f'{path}: {e}') from None
            if bound.kwargs:
                name = next(name for name in self.signature.parameters if name not in bound.arguments)
                raise ArgumentsError(f'{path}: expected {name!r} too, as arguments behind it are given')
            return bound.args
        if len(args) < self.least or len(args) > self.fixed and not self.variadic:
            expected = str(self.signature.replace(return_annotation=inspect.Signature.empty)).replace("'", '')
            raise ArgumentsError(f'{path}: expected the arguments {expected}, found {len(args)} of them')
        return args


class _Base(Generic[P, R]):
    def __init__(self, path: str, declaration: Callable[P, R] | _Declared) -> None:
        self.path = path
        self._declared = declaration if isinstance(declaration, _Declared) else _Declared(declaration)
        self.__doc__ = self._declared.declaration.__doc__

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.path!r})'

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Describes a call, for delay_many of a queue."""
        return Call(self.path, self._declared.arguments(self.path, args, kwargs), {})


class Ref(Generic[R]):
    """Names a task whose result is an R. `ref` is the queue's own reference, `id` the task's id."""

    __slots__ = ('_returns', 'id', 'ref')

    def __init__(self, ref: ref.Ref, returns: Callable[[], Any]) -> None:
        self.ref = ref
        self.id = ref.id
        self._returns = returns

    def __repr__(self) -> str:
        return f'typed {self.ref!r}'

    def result(self, timeout: Seconds | None = None) -> R:
        """Waits for the result as Ref.result of the queue does, and returns it as the type that the function's
        declaration gives.

        Structs become dataclasses. A list, a map or bytes that is nil in Go becomes empty. A datetime has microseconds
        only; smaller units are cut off. Raises DelayedError if the result does not fit the declaration.
        """
        value: R = restore(self.ref.result(timeout), self._returns())
        return value


class AsyncRef(Generic[R]):
    """Names a task whose result is an R, like Ref. Awaiting it awaits result()."""

    __slots__ = ('_returns', 'id', 'ref')

    def __init__(self, ref: aio.Ref, returns: Callable[[], Any]) -> None:
        self.ref = ref
        self.id = ref.id
        self._returns = returns

    def __repr__(self) -> str:
        return f'typed {self.ref!r}'

    async def result(self, timeout: Seconds | None = None) -> R:
        """Waits for the result and returns it as Ref.result does."""
        value: R = restore(await self.ref.result(timeout), self._returns())
        return value

    def __await__(self) -> Generator[Any, None, R]:
        return self.result().__await__()


class Function(_Base[P, R]):
    """A Go function on a queue. `path` is its path; its methods take the parameters of its declaration."""

    def __init__(self, queue: queue.Queue, path: str, declaration: Callable[P, R] | _Declared) -> None:
        super().__init__(path, declaration)
        self._queue = queue

    def options(self, **options: Unpack[OptionValues]) -> Function[P, R]:
        """Returns the function with further options for its calls. See Options."""
        return Function(self._queue.options(**options), self.path, self._declared)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]:
        """Makes a worker call the function with these arguments. Returns once Redis has the task."""
        arguments = self._declared.arguments(self.path, args, kwargs)
        return Ref(self._queue.delay(self.path, *arguments), lambda: self._declared.returns)

    def ref(self, id: str) -> Ref[R]:
        """Returns a reference to the task with this id, which calls the function, without asking Redis."""
        return Ref(self._queue.ref(id), lambda: self._declared.returns)


class AsyncFunction(_Base[P, R]):
    """A Go function on a queue of godelayed.aio, like Function."""

    def __init__(self, queue: aio.Queue, path: str, declaration: Callable[P, R] | _Declared) -> None:
        super().__init__(path, declaration)
        self._queue = queue

    def options(self, **options: Unpack[OptionValues]) -> AsyncFunction[P, R]:
        """Returns the function with further options for its calls. See Options."""
        return AsyncFunction(self._queue.options(**options), self.path, self._declared)

    async def delay(self, *args: P.args, **kwargs: P.kwargs) -> AsyncRef[R]:
        """Makes a worker call the function with these arguments. Returns once Redis has the task."""
        arguments = self._declared.arguments(self.path, args, kwargs)
        return AsyncRef(await self._queue.delay(self.path, *arguments), lambda: self._declared.returns)

    def ref(self, id: str) -> AsyncRef[R]:
        """Returns a reference to the task with this id, which calls the function, without asking Redis."""
        return AsyncRef(self._queue.ref(id), lambda: self._declared.returns)


def restore(value: Any, hint: Any, where: str = 'result') -> Any:
    """Converts value, as it was decoded, to the type that hint names. Raises DelayedError if it does not fit."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union:
        return None if value is None else restore(value, inner[0], where)
    if origin is list:
        if value is None:
            return []
        if isinstance(value, list):
            return [restore(v, inner[0], f'{where}[{i}]') for i, v in enumerate(value)]
    elif origin is dict:
        if value is None:
            return {}
        if isinstance(value, dict):
            return {
                restore(k, inner[0], f'a key of {where}'): restore(v, inner[1], f'{where}[{k!r}]')
                for k, v in value.items()
            }
    elif dataclasses.is_dataclass(hint):
        return _struct(value, hint, where)
    elif hint is bytes and value is None:
        return b''
    elif hint is datetime.datetime and isinstance(value, msgpack.Timestamp):
        return value.to_datetime()
    elif hint is bool or hint is int:
        if type(value) is hint:
            return value
    elif hint is float:
        if type(value) in (float, int):
            return float(value)
    elif (
        hint is Any or not isinstance(hint, type) or isinstance(value, hint)
    ):  # hint is not a type in a list type that contains itself
        return value
    raise _misfit(where, getattr(hint, '__name__', str(hint)), value)


def _misfit(where: str, want: str, value: Any) -> DelayedError:
    return DelayedError(
        f'{where}: expected {want}, found {type(value).__name__}; the Go function has changed: make the stubs anew'
    )


def _struct(value: Any, hint: Any, where: str) -> Any:
    """Makes the dataclass of a struct, which a message holds as a map of its fields or as an array."""
    fields = dataclasses.fields(hint)
    hints = _hints(hint)
    if isinstance(value, list):
        if len(value) != len(fields):
            raise _misfit(where, f'the {len(fields)} fields of {hint.__name__}', value)
        found = dict(zip([f.name for f in fields], value))
    elif isinstance(value, dict):
        names = {f.metadata.get('msgpack', f.name): f.name for f in fields}
        if not value.keys() <= names.keys():
            raise _misfit(where, f'the fields of {hint.__name__}', value)
        found = {names[k]: v for k, v in value.items()}
    else:
        raise _misfit(where, hint.__name__, value)
    restored = {name: restore(v, hints[name], f'{where}.{name}') for name, v in found.items()}
    try:
        return hint(**restored)
    except TypeError:
        raise _misfit(where, f'all fields of {hint.__name__}', value) from None


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)
