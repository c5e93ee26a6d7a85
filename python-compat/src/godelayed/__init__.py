"""Delay calls of Go and Python functions, on queues that Go and Python share.

q = godelayed.Queue('mail', redis.Redis())
q.delay('example.com/app/mail.Welcome', 42, 'en')
"""

__version__ = '0.1.0'

from .app import Delayed as Delayed
from .app import Task as Task
from .app import task as task
from .calls import Call as Call
from .context import Context as Context
from .context import current as current
from .errors import ArgumentsError as ArgumentsError
from .errors import BatchError as BatchError
from .errors import CanceledError as CanceledError
from .errors import DelayedError as DelayedError
from .errors import DuplicateError as DuplicateError
from .errors import EndedError as EndedError
from .errors import FullError as FullError
from .errors import NoEntryError as NoEntryError
from .errors import NoIdError as NoIdError
from .errors import NoResultError as NoResultError
from .errors import NotArchivedError as NotArchivedError
from .errors import RangeError as RangeError
from .errors import TaskError as TaskError
from .errors import UnavailableError as UnavailableError
from .errors import UnknownError as UnknownError
from .errors import WaitTimeoutError as WaitTimeoutError
from .info import Progress as Progress
from .info import State as State
from .info import TaskInfo as TaskInfo
from .middleware import Enqueuing as Enqueuing
from .middleware import around_enqueue as around_enqueue
from .middleware import around_task as around_task
from .middleware import on_pool_start as on_pool_start
from .middleware import on_process_end as on_process_end
from .middleware import on_process_start as on_process_start
from .options import Options as Options
from .outcomes import Archive as Archive
from .outcomes import Drop as Drop
from .outcomes import RetryIn as RetryIn
from .outcomes import Snooze as Snooze
from .outcomes import TaskCanceled as TaskCanceled
from .outcomes import TaskInterrupted as TaskInterrupted
from .outcomes import TaskLost as TaskLost
from .outcomes import TaskTimeout as TaskTimeout
from .outcomes import WorkerStopping as WorkerStopping
from .queue import Queue as Queue
from .ref import Ref as Ref
from .registry import Registry as Registry
from .signature import call as call
from .worker import StillRunningError as StillRunningError
from .worker import Worker as Worker
from .worker import WorkerConfig as WorkerConfig
