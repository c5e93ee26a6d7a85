"""Running tasks: the parts of a worker. docs/ARCHITECTURE.md of the project names their likes in Go."""

from .config import WorkerConfig
from .worker import StillRunningError, Worker

__all__ = ['StillRunningError', 'Worker', 'WorkerConfig']
