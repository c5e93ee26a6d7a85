"""Functions of Go. Made by godelayed.stubs: do not edit."""

# ruff: noqa
from __future__ import annotations

from dataclasses import dataclass, field

from godelayed import Queue, aio
from godelayed.typed import AsyncFunction, Function


@dataclass
class Line:
    """github.com/godelayed/delayed/examples/mail.Line"""

    article: str = field(metadata={"msgpack": "Article"})
    count: int = field(metadata={"msgpack": "Count"})
    cents: int = field(metadata={"msgpack": "Cents"})


@dataclass
class Order:
    """github.com/godelayed/delayed/examples/mail.Order"""

    id: int = field(metadata={"msgpack": "ID"})
    lines: list[Line] = field(metadata={"msgpack": "Lines"})


def _mail_digest(user_id: int, *articles: str) -> None:
    """github.com/godelayed/delayed/examples/mail.Digest(userID int64, articles ...string)"""
    raise NotImplementedError("it runs in a Go worker: call delay")


def _mail_receipt(user_id: int, order: Order) -> None:
    """github.com/godelayed/delayed/examples/mail.Receipt(userID int64, order mail.Order)"""
    raise NotImplementedError("it runs in a Go worker: call delay")


def _mail_welcome(user_id: int, lang: str) -> None:
    """github.com/godelayed/delayed/examples/mail.Welcome(userID int64, lang string)"""
    raise NotImplementedError("it runs in a Go worker: call delay")


class MailTasks:
    """The functions of mail, on a queue."""

    def __init__(self, queue: Queue) -> None:
        self.digest = Function(
            queue,
            "github.com/godelayed/delayed/examples/mail.Digest",
            _mail_digest,
        )
        self.receipt = Function(
            queue,
            "github.com/godelayed/delayed/examples/mail.Receipt",
            _mail_receipt,
        )
        self.welcome = Function(
            queue,
            "github.com/godelayed/delayed/examples/mail.Welcome",
            _mail_welcome,
        )


class Tasks:
    """All functions, on a queue."""

    def __init__(self, queue: Queue) -> None:
        self.mail = MailTasks(queue)


class AsyncMailTasks:
    """The functions of mail, on a queue of godelayed.aio."""

    def __init__(self, queue: aio.Queue) -> None:
        self.digest = AsyncFunction(
            queue,
            "github.com/godelayed/delayed/examples/mail.Digest",
            _mail_digest,
        )
        self.receipt = AsyncFunction(
            queue,
            "github.com/godelayed/delayed/examples/mail.Receipt",
            _mail_receipt,
        )
        self.welcome = AsyncFunction(
            queue,
            "github.com/godelayed/delayed/examples/mail.Welcome",
            _mail_welcome,
        )


class AsyncTasks:
    """All functions, on a queue of godelayed.aio."""

    def __init__(self, queue: aio.Queue) -> None:
        self.mail = AsyncMailTasks(queue)
