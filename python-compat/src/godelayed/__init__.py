"""Delay calls of Go and Python functions, on queues that Go and Python share.

q = godelayed.Queue('mail', redis.Redis())
q.delay('example.com/app/mail.Welcome', 42, 'en')
"""

__version__ = '0.1.0'

from .app import Delayed, Task, task
from .calls import Call, Options
from .context import Context, current
from .errors import (
    ArgumentsError,
    BatchError,
    CanceledError,
    DelayedError,
    DuplicateError,
    EndedError,
    FullError,
    NoEntryError,
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
from .middleware import Enqueuing, around_enqueue, around_task, on_pool_start, on_process_end, on_process_start
from .outcomes import (
    Discard,
    Drop,
    RetryIn,
    Snooze,
    TaskCanceled,
    TaskInterrupted,
    TaskLost,
    TaskTimeout,
    WorkerStopping,
)
from .queue import Queue
from .ref import Ref
from .registry import Registry
from .signature import call
from .worker import StillRunningError, Worker, WorkerConfig

__all__ = [
    'ArgumentsError',
    'BatchError',
    'Call',
    'CanceledError',
    'Context',
    'Delayed',
    'DelayedError',
    'Discard',
    'Drop',
    'DuplicateError',
    'EndedError',
    'Enqueuing',
    'FullError',
    'NoEntryError',
    'NoIdError',
    'NoResultError',
    'NotArchivedError',
    'Options',
    'Progress',
    'Queue',
    'RangeError',
    'Ref',
    'Registry',
    'RetryIn',
    'Snooze',
    'State',
    'StillRunningError',
    'Task',
    'TaskCanceled',
    'TaskError',
    'TaskInfo',
    'TaskInterrupted',
    'TaskLost',
    'TaskTimeout',
    'UnavailableError',
    'UnknownError',
    'WaitTimeoutError',
    'Worker',
    'WorkerConfig',
    'WorkerStopping',
    '__version__',
    'around_enqueue',
    'around_task',
    'call',
    'current',
    'on_pool_start',
    'on_process_end',
    'on_process_start',
    'task',
]
