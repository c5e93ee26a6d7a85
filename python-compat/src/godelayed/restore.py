"""Converts decoded values to the types that annotations name: results, and arguments of a worker's functions."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, Union, cast

from .errors import DelayedError
from .kinds import is_dict, is_list

_UNIONS = (Union, types.UnionType)
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def restore(value: Any, hint: Any, where: str = 'result') -> Any:
    """Converts value, as it was decoded, to the type that hint names. Raises DelayedError if it does not fit.

    What is nil in Go becomes an empty list, dict or bytes, unless the hint is Optional. Of annotations that say nothing
    about the form of a value, such as a TypeVar, it knows nothing: such a value stays as it is.
    """
    if getattr(hint, '__total__', None) is not None:  # a TypedDict
        hint = dict
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _union(value, inner, where)
    if origin in _LISTS or origin is tuple:
        if value is None and origin in _LISTS:
            return []
        if is_list(value):
            found: list[Any] = value
            if origin is not tuple:
                return [restore(v, inner[0], f'{where}[{i}]') for i, v in enumerate(found)]
            hints = [inner[0]] * len(found) if inner[-1:] == (Ellipsis,) else list(inner)
            if len(hints) == len(found):
                return tuple(restore(v, h, f'{where}[{i}]') for i, (v, h) in enumerate(zip(found, hints)))
    elif origin in _MAPS:
        if value is None:
            return {}
        if is_dict(value):
            pairs: dict[Any, Any] = value
            return {
                restore(k, inner[0], f'a key of {where}'): restore(v, inner[1], f'{where}[…]')  # logs show it
                for k, v in pairs.items()
            }
    elif hint is None or hint is type(None):
        if value is None:
            return None
    elif hint is Any or origin is not None or not isinstance(hint, type):  # such as a list type that contains itself
        return value
    elif dataclasses.is_dataclass(hint):
        return _struct(value, hint, where)
    elif value is None and hint in (list, dict, bytes):
        return cast('Any', hint)()
    elif hint in (bool, int):
        if type(value) is hint:
            return value
    elif hint is float:
        if type(value) is float or type(value) is int:
            return float(value)
    elif hint is tuple and is_list(value):
        return tuple(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    elif isinstance(value, hint):
        return value
    else:
        return _made(value, hint, where)
    raise _misfit(where, getattr(hint, '__name__', str(hint)), value)


def _union(value: Any, members: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in members:
        return None
    error: DelayedError | None = None
    for member in members:
        if member is not type(None):
            try:
                return restore(value, member, where)
            except DelayedError as e:
                error = error or e
    raise error or _misfit(where, 'None', value)


def _made(value: Any, hint: Any, where: str) -> Any:
    """Makes an object of a class whose objects travel as something simpler."""
    simple: Any = None
    if issubclass(hint, enum.Enum) or issubclass(hint, (uuid.UUID, decimal.Decimal)) and isinstance(value, str):
        simple = hint
    elif issubclass(hint, tuple) and is_list(value):  # a NamedTuple
        simple = _spread(hint)
    if simple is not None:
        try:
            return simple(value)
        except (ValueError, TypeError, decimal.InvalidOperation):
            pass
    raise _misfit(where, hint.__name__, value)


def _spread(hint: Any) -> Callable[[Any], Any]:
    return lambda row: hint(*row)


def _misfit(where: str, want: str, value: Any) -> DelayedError:
    return DelayedError(
        f'{where}: expected {want}, found {type(value).__name__}; the function has changed, or its annotation is '
        'wrong: correct it, or make the stubs of Go functions anew'
    )


def _struct(value: Any, hint: Any, where: str) -> Any:
    """Makes a dataclass of a struct, which a message holds as a map of its fields or as an array."""
    fields = dataclasses.fields(hint)
    hints = _hints(hint)
    if is_list(value):
        row: list[Any] = value
        if len(row) != len(fields):
            raise _misfit(where, f'the {len(fields)} fields of {hint.__name__}', row)
        found = dict(zip([f.name for f in fields], row))
    elif is_dict(value):
        pairs: dict[Any, Any] = value
        names: dict[Any, str] = {f.metadata.get('msgpack', f.name): f.name for f in fields}
        if not pairs.keys() <= names.keys():
            raise _misfit(where, f'the fields of {hint.__name__}', pairs)
        found = {names[k]: v for k, v in pairs.items()}
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


class Parameters:
    """The parameters of a function, whose arguments become what their annotations name.

    Annotations that name other classes than restore can make, or none, leave their arguments as they came; so do
    numbers and texts, as in a call of the function itself.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._positional: list[Any] = []
        self._named: dict[str, Any] = {}
        self._more = self._others = Any  # of *args and **kwargs
        self._plain = True  # whether all arguments stay as they came
        try:
            signature, hints = inspect.signature(function), typing.get_type_hints(function)
        except Exception:  # a builtin, or an annotation that names what is not there
            return
        self._plain = not any(map(_makes, hints.values()))
        for p in signature.parameters.values():
            hint: Any = hints.get(p.name, Any)
            hint = Any if not _makes(hint) else hint | None if p.default is None else hint
            if p.kind is p.VAR_POSITIONAL:
                self._more = hint
            elif p.kind is p.VAR_KEYWORD:
                self._others = hint
            else:
                if p.kind is not p.KEYWORD_ONLY:
                    self._positional.append(hint)
                if p.kind is not p.POSITIONAL_ONLY:
                    self._named[p.name] = hint

    def restored(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments as the annotations say. Raises DelayedError if one does not fit."""
        if self._plain:
            return args, kwargs
        hints = self._positional + [self._more] * (len(args) - len(self._positional))
        return (
            [restore(a, hint, f'argument {i}') for i, (a, hint) in enumerate(zip(args, hints), 1)],
            {k: restore(a, self._named.get(k, self._others), f'argument {k}') for k, a in kwargs.items()},
        )


def _makes(hint: Any) -> bool:
    """Returns whether restore makes something of values for the annotation, and knows all classes in it."""
    if typing.get_origin(hint) in _UNIONS:
        return _known(hint) and any(map(_makes, typing.get_args(hint)))
    return _known(hint) and hint not in _AS_THEY_COME


_AS_THEY_COME = (Any, None, type(None), bool, int, float, str)
_MADE = (datetime.datetime, enum.Enum, uuid.UUID, decimal.Decimal, tuple, list, dict, bytes)


def _known(hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS or origin in _LISTS or origin in _MAPS or origin is tuple:
        return all(h is Ellipsis or _known(h) for h in inner)
    if hint in _AS_THEY_COME:
        return True
    return origin is None and isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, _MADE))
