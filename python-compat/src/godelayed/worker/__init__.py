"""Running tasks: the parts of a worker. The project's docs/ARCHITECTURE.md describes these parts in Go."""

import logging

from ..errors import StillRunningError
from ..text import OneLine
from .config import WorkerConfig
from .worker import Worker

__all__ = ['StillRunningError', 'Worker', 'WorkerConfig']

logging.getLogger('godelayed.worker').addFilter(OneLine())
