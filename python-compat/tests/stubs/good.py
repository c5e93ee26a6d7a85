"""Calls that are right. mypy --strict finds no error in them."""

from __future__ import annotations

from datetime import datetime, timezone

import redis
import redis.asyncio
import tasks

import godelayed
import godelayed.aio
from godelayed.typed import AsyncRef, Ref

q = godelayed.Queue('mail', redis.Redis())
t = tasks.Tasks(q)

none: Ref[None] = t.app_mail.welcome.delay(42, 'en')
none = t.app_mail.digest.delay(1, datetime.now(timezone.utc), 'a', 'b')
none = t.app_mail.digest.delay(user_id=1, from_=datetime.now(timezone.utc))
none = t.late.delay(1)
none = t.late.delay(1, 'b')
none = t.late.delay(1, b='b', c=['x'])
none = t.signature_test.mailer.send.options(retry=3).delay('ann@example.com')

address = tasks.Address(street='s', zip_code='z', class_=None)
order = tasks.Order(
    id=1, billing=address, shipping=None, lines=[tasks.Line(article='nut', price=1)], placed=datetime.now(timezone.utc)
)
number: int = t.app_mail.place.delay(order).result(timeout=5)
maybe: tasks.Order | None = t.app_mail.spread.delay('a', None, tasks.Line('nut', 0.5)).result()
trees: dict[str, tasks.Tree] = t.tree.grow.ref('id').result()
t.any.anything.delay(object(), {1: ['x', 2]}, keep=True)
t.photos.scale.delay(b'0123456789abcdef', 1, 2, far=None)
refs = q.delay_many([t.app_mail.welcome.call(1, 'de'), t.sum.int.call(1, 2, 3, lambda_=4)])
none = q.delay(t.app_mail.welcome, 42, 'en')
none.cancel()
state: godelayed.State = none.state()
info: godelayed.TaskInfo = none.info()
done: int = none.progress().done

app = godelayed.Delayed('redis://localhost:6379/0', queue='mail')


@godelayed.task
def plain(user_id: int, lang: str = 'en') -> str:
    return lang * user_id


@app.task(queue='bulk', retry=3)
async def waits(user_id: int, *, lang: str = 'en') -> list[int]:
    return [user_id]


text: str = plain(1)
text = plain.delay(1, lang='de').result()
text = plain.options(retry=3).delay(1, 'de').result(timeout=1)
text = q.delay(plain, 1, lang='de').result()
numbers: list[int] = waits.delay(1, lang='de').result()
numbers = app.queue('other').options(retry=1).delay(waits, 1).result()
refs = q.delay_many([plain.call(1), waits.call(2, lang='de'), godelayed.call(plain, 1), godelayed.call('a.B', 1)])
untyped: str = q.delay('mail.tasks:welcome', 42, lang='en').result()


async def run() -> list[int]:
    ref: AsyncRef[str] = await plain.aio.options(retry=3).delay(1, 'de')
    await ref.cancel()
    return await (await waits.aio.delay(1, lang=await ref)) + await waits(1)


async def main() -> int:
    a = tasks.AsyncTasks(godelayed.aio.Queue('mail', redis.asyncio.Redis()))
    ref: AsyncRef[int] = await a.app_mail.place.options(retry=3).delay(order)
    return await ref + await ref.result(timeout=5)
