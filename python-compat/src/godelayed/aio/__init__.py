"""The asynchronous producer: it has the same names as the package, to be awaited.

q = godelayed.aio.Queue('mail', redis.asyncio.Redis())
ref = await q.options(keep_result=60).delay('example.com/app/mail.Welcome', 42, 'en')
await ref.result(timeout=10)
"""

from ..calls import Call
from ..options import Options
from ..signature import call
from .queue import Queue
from .ref import Ref

__all__ = ['Call', 'Options', 'Queue', 'Ref', 'call']
