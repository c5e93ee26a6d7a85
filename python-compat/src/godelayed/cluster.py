"""Redis Cluster: which node has the keys of a queue."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import redis.crc
import redis.exceptions

from .errors import ArgumentsError
from .keys import Keys

Address = tuple[str, int]

# Answers of a node that has not run the command, because its slot is elsewhere, on its way, or nowhere for the moment.
MOVED = (
    redis.exceptions.MovedError,
    redis.exceptions.AskError,
    redis.exceptions.TryAgainError,
    redis.exceptions.ClusterDownError,
)


class Cluster:
    """The nodes of a Redis Cluster, each with a client of its own, and who has which slots.

    Commands are sent to the client of the node that has their key, by Link. hosts are some of the nodes; client makes
    the client of a node. Nothing connects before the first command. Threads may share it, or, if its clients are those
    of redis.asyncio, coroutines of one loop.
    """

    def __init__(self, hosts: Sequence[Address], client: Callable[[str, int], Any]) -> None:
        self.hosts = list(hosts)
        self._client = client
        self._nodes: dict[Address, Any] = {}
        self._slots: list[tuple[int, int, Address]] = []  # first, last, and the master of both and what is in between

    def __repr__(self) -> str:
        return f'Cluster({",".join(f"{host}:{port}" for host, port in self.hosts)})'

    def node(self, host: str, port: int) -> Any:
        """Returns the client of a node."""
        return self._nodes.setdefault((host, port), self._nodes.get((host, port)) or self._client(host, port))

    def any(self) -> Any:
        """Returns the client of some node, another one at each call."""
        return self.node(*random.choice([address for *_, address in self._slots] or self.hosts))

    def known(self) -> list[Any]:
        """Returns the clients of all known nodes, in the order in which to ask them for the others."""
        masters = dict.fromkeys(address for *_, address in self._slots)
        return [self.node(*address) for address in {**masters, **dict.fromkeys(self.hosts)}]

    def master(self, key: str | bytes) -> Any:
        """Returns the client of the node that has a key, None if that is not known."""
        slot = slot_of(key)
        return next((self.node(*address) for first, last, address in self._slots if first <= slot <= last), None)

    def learn(self, reply: Any, asked: Any) -> None:
        """Takes the reply of a node to CLUSTER SLOTS."""
        own = asked.connection_pool.connection_kwargs['host']
        self._slots = [(int(r[0]), int(r[1]), (_text(r[2][0]) or own, int(r[2][1]))) for r in reply]

    def forget(self) -> None:
        """Notes that the slots may have moved. The nodes are kept, to ask them where."""
        self.hosts = list(dict.fromkeys([*(address for *_, address in self._slots), *self.hosts]))
        self._slots = []

    @property
    def connection_pool(self) -> Any:
        """The pool of some node, for the settings that all nodes share."""
        return self.any().connection_pool

    def ping(self) -> Any:
        """Asks some node whether it is there."""
        return self.any().ping()

    def pubsub(self) -> Any:
        """Returns a PubSub at some node: nodes pass on to one another what is published."""
        return self.any().pubsub()

    def close(self) -> None:
        """Closes the connections of clients that block."""
        for client in self._nodes.values():
            client.close()


def check_tag(client: Any, keys: Keys) -> None:
    """Raises ArgumentsError if the keys of a queue are in several slots of a cluster."""
    if isinstance(client, Cluster) and slot_of(keys.list) != slot_of(keys.noti):
        raise ArgumentsError(
            f'queue {keys.list!r}: expected a tag in its name, such as {{{keys.list}}}, for in a cluster all keys of a '
            'queue must have one'
        )


def slot_of(key: str | bytes) -> int:
    """Returns the slot of a key."""
    return int(redis.crc.key_slot(key.encode() if isinstance(key, str) else key))


def _text(host: Any) -> str:
    return host.decode() if isinstance(host, bytes) else host or ''
