"""Functions with their parameters and results: what a declaration, or a registered function, says about its calls."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from .calls import Call, checked_path
from .errors import ArgumentsError

P = ParamSpec('P')
R = TypeVar('R')

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The parameters and the result of a function, read once. Builtins without a signature take any arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            self.signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None
        parameters = list(self.signature.parameters.values()) if self.signature else []
        self.fixed = sum(p.kind in _POSITIONAL for p in parameters)
        self.least = sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
        self.most = sys.maxsize if any(p.kind is p.VAR_POSITIONAL for p in parameters) else self.fixed
        if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
            self.most = -1  # positional arguments are never enough

    @functools.cached_property
    def returns(self) -> Any:
        """The annotation of the result; Any if there is none, or if it names what is not there."""
        try:
            return typing.get_type_hints(self.function).get('return', Any)
        except Exception:
            return Any

    def check(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments | None:
        """Raises ArgumentsError if the arguments do not fit. Returns them by name if some were given by name."""
        if self.signature is None or (not kwargs and self.least <= len(args) <= self.most):
            return None
        try:
            return self.signature.bind(*args, **kwargs)
        except TypeError as e:
            if kwargs:
                raise ArgumentsError(f'{path}: {e}') from None
            expected = str(self.signature.replace(return_annotation=inspect.Signature.empty)).replace("'", '')
            raise ArgumentsError(f'{path}: expected the arguments {expected}, found {len(args)} of them') from None

    def positional(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the arguments in their order, as Go functions take them."""
        bound = self.check(path, args, kwargs)
        if bound is None:
            return args
        if bound.kwargs:
            name = next(name for name in bound.signature.parameters if name not in bound.arguments)
            raise ArgumentsError(f'{path}: expected {name!r} too, as arguments behind it are given')
        return bound.args


class Typed(Generic[P, R]):
    """A function that workers run, with the parameters P and the result R. `path` is its path."""

    def __init__(self, path: str, signature: Signature) -> None:
        self.path = path
        self._signature = signature
        self.__doc__ = signature.function.__doc__

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.path!r})'

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Describes a call, for Queue.delay_many. Raises ArgumentsError if there are too few or too many arguments."""
        if ':' not in self.path:
            return Call(self.path, self._signature.positional(self.path, args, kwargs), {})
        self._signature.check(self.path, args, kwargs)
        return Call(self.path, args, kwargs)

    def returns(self) -> Any:
        """The annotation of what the function returns."""
        return self._signature.returns


@overload
def call(function: str, /, *args: Any, **kwargs: Any) -> Call: ...


@overload
def call(function: Typed[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Call: ...


def call(function: Any, /, *args: Any, **kwargs: Any) -> Call:
    """Describes a call for Queue.delay_many.

    function is a path, or a function that was registered with @task.
    """
    if isinstance(function, Typed):
        made: Call = cast('Any', function).call(*args, **kwargs)
        return made
    return Call(checked_path(function), args, kwargs)


def returns_of(function: Any) -> Callable[[], Any] | None:
    """Returns what gives the annotation of a function's result; None for a path, whose results stay as they come."""
    return function.returns if isinstance(function, Typed) else None
