"""Calls that are wrong, each for one reason, which the line names by its code in mypy."""

from __future__ import annotations

from datetime import datetime, timezone

import redis
import redis.asyncio
import tasks

import godelayed
import godelayed.aio

t = tasks.Tasks(godelayed.Queue('mail', redis.Redis()))

t.app_mail.welcome.delay('42', 'en')  # error: arg-type
t.app_mail.welcome.delay(42)  # error: call-arg
t.app_mail.welcome.delay(42, 'en', 'de')  # error: call-arg
t.app_mail.welcome.delay(arg1=42, arg2='en')  # error: call-arg
t.app_mail.welcome.call(42, None)  # error: arg-type
t.app_mail.welcome.options(retry=1).delay(42, b'en')  # error: arg-type
t.app_mail.welcome.options(retries=1)  # error: call-arg
t.app_mail.welcome.options(retry='1')  # error: arg-type
t.app_mail.goodbye.delay()  # error: attr-defined
t.app_mail.digest.delay(1, '2026-01-02')  # error: arg-type
t.app_mail.digest.delay(1, datetime.now(timezone.utc), 'a', 2)  # error: arg-type
t.app_mail.place.delay({'ID': 1})  # error: arg-type
t.late.delay()  # error: call-arg
t.late.delay(1, c=['x'], d=1)  # error: call-arg
tasks.Line(article='nut', price='1')  # error: arg-type
tasks.Line(article='nut')  # error: call-arg
text: str = t.app_mail.place.delay(tasks.Order.__new__(tasks.Order)).result()  # error: assignment
print(t.app_mail.spread.delay('a').result().id)  # error: union-attr
tasks.Tasks(godelayed.aio.Queue('mail', redis.asyncio.Redis()))  # error: arg-type

q = godelayed.Queue('mail', redis.Redis())


def plain(user_id: int, lang: str = 'en') -> str:
    return lang * user_id


task = godelayed.task(plain)


@godelayed.task(retry=3)
async def waits(user_id: int) -> int:
    return user_id


q.delay(plain, 'wrong', zzz=4)  # error: call-overload
q.delay(task, 'wrong')  # error: call-overload
q.delay(task, 1, zzz=4)  # error: call-arg
godelayed.call(plain, 1)  # error: call-overload
godelayed.call(task)  # error: call-overload
task('1')  # error: arg-type
task.delay()  # error: call-arg
task.delay(1, zzz=4)  # error: call-arg
task.call('1')  # error: arg-type
task.options(retry=1).delay(1, 2)  # error: arg-type
task.options(retries=1)  # error: call-arg
number: int = task.delay(1).result()  # error: assignment
number = waits(1)  # error: assignment
waits.delay(1).cancels()  # error: attr-defined
godelayed.task(retries=3)(plain)  # error: call-overload


async def main() -> None:
    await task.aio.delay('1')  # error: arg-type
    number: str = await (await waits.aio.delay(1))  # error: assignment
    print(number)
