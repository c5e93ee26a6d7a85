"""Delay calls of Go and Python functions, on queues that Go and Python share.

q = godelayed.Queue('mail', redis.Redis())
q.delay('example.com/app/mail.Welcome', 42, 'en')
"""

from .errors import (
    ArgumentsError,
    BatchError,
    CanceledError,
    DelayedError,
    DuplicateError,
    EndedError,
    FullError,
    NoIdError,
    NoResultError,
    NotArchivedError,
    RangeError,
    TaskError,
    UnavailableError,
    UnknownError,
    WaitTimeoutError,
)
from .info import Progress, State, TaskInfo
from .queue import Queue
from .ref import Ref
from .task import Call, Options, call

__all__ = [
    'ArgumentsError',
    'BatchError',
    'Call',
    'CanceledError',
    'DelayedError',
    'DuplicateError',
    'EndedError',
    'FullError',
    'NoIdError',
    'NoResultError',
    'NotArchivedError',
    'Options',
    'Progress',
    'Queue',
    'RangeError',
    'Ref',
    'State',
    'TaskError',
    'TaskInfo',
    'UnavailableError',
    'UnknownError',
    'WaitTimeoutError',
    'call',
]
