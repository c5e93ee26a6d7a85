"""What a decoded value is, in a way that type checkers follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeGuard


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Returns whether a value is a list, of anything."""
    return isinstance(value, list)


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """Returns whether a value is a dict, of anything."""
    return isinstance(value, dict)
