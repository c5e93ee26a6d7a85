"""Delay calls of Go and Python functions, on queues that Go and Python share.

q = godelayed.Queue('mail', redis.Redis())
q.delay('example.com/app/mail.Welcome', 42, 'en')
"""

from .errors import ArgumentsError, BatchError, DelayedError, DuplicateError, FullError, RangeError, UnavailableError, UnknownError
from .queue import Queue, Ref
from .task import Call, Options, call

__all__ = [
    'ArgumentsError',
    'BatchError',
    'Call',
    'DelayedError',
    'DuplicateError',
    'FullError',
    'Options',
    'Queue',
    'RangeError',
    'Ref',
    'UnavailableError',
    'UnknownError',
    'call',
]
