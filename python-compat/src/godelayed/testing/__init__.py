"""For tests of programs that delay work: queues in memory, what was enqueued, and a worker that runs as tests say.

with InMemory() as delayed:
    sign_up(42)
    delayed.require_enqueued(tasks.welcome, 42, lang='en')  # a reminder too, a week later
    delayed.drain()  # runs both, now
"""

from .kit import InMemory, Result, Run
from .snapshots import Snapshot

__all__ = ['InMemory', 'Result', 'Run', 'Snapshot']
