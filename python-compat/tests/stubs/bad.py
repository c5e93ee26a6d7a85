"""Calls that are wrong, each for one reason, which the line names by its code in mypy."""

from __future__ import annotations

from datetime import datetime, timezone

import redis
import redis.asyncio
import tasks

import godelayed

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
