"""The base of modules made by godelayed.stubs: Go functions with the parameters and results of their declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import aio, queue
from .aio.ref import Ref as AsyncRef
from .ref import Ref
from .signature import P, R, Signature, Typed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OptionValues

__all__ = ['ABSENT', 'AsyncFunction', 'AsyncRef', 'Function', 'Ref']


class _Absent:
    def __repr__(self) -> str:
        return 'ABSENT'


ABSENT: Any = _Absent()
"""The default of a parameter that is not sent unless the caller gives an argument for it.

It is not a value: passing it is an error.
"""


class Function(Typed[P, R]):
    """A function on a queue. `path` is its path; its methods take the parameters of its declaration."""

    def __init__(self, queue: queue.Queue, path: str, declaration: Callable[P, R] | Signature) -> None:
        super().__init__(path, declaration if isinstance(declaration, Signature) else Signature(declaration))
        self._queue = queue

    def options(self, **options: Unpack[OptionValues]) -> Function[P, R]:
        """Returns the function with further options for its calls. See Options."""
        return Function(self._queue.options(**options), self.path, self._signature)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]:
        """Makes a worker call the function with these arguments. Returns once Redis has the task."""
        return self._queue.delay(self, *args, **kwargs)

    def ref(self, id: str) -> Ref[R]:
        """Returns a reference to the task with this id, which calls the function, without asking Redis."""
        return Ref(self._queue, id, returns=self.returns)


class AsyncFunction(Typed[P, R]):
    """A function on a queue of godelayed.aio, like Function."""

    def __init__(self, queue: aio.Queue, path: str, declaration: Callable[P, R] | Signature) -> None:
        super().__init__(path, declaration if isinstance(declaration, Signature) else Signature(declaration))
        self._queue = queue

    def options(self, **options: Unpack[OptionValues]) -> AsyncFunction[P, R]:
        """Returns the function with further options for its calls. See Options."""
        return AsyncFunction(self._queue.options(**options), self.path, self._signature)

    async def delay(self, *args: P.args, **kwargs: P.kwargs) -> AsyncRef[R]:
        """Makes a worker call the function with these arguments. Returns once Redis has the task."""
        return await self._queue.delay(self, *args, **kwargs)

    def ref(self, id: str) -> AsyncRef[R]:
        """Returns a reference to the task with this id, which calls the function, without asking Redis."""
        return AsyncRef(self._queue, id, returns=self.returns)
