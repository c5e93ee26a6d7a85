#!/usr/bin/env python
"""A Python service that delays the Go functions of ../mail, which mypy and editors know by ./tasks.py."""

import godelayed
from tasks import Line, Order, Tasks

queue = godelayed.Delayed().queue('mail')  # the server is that of REDIS_URL
tasks = Tasks(queue)


def sign_up(user_id: int) -> None:
    tasks.mail.welcome.delay(user_id, 'en')
    tasks.mail.digest.options(retry=3).delay(user_id, 'shoes', 'hats')


def buy(user_id: int) -> None:
    order = Order(id=7, lines=[Line(article='hat', count=2, cents=1250)])
    tasks.mail.receipt.delay(user_id=user_id, order=order)


def greet_all(user_ids: list[int]) -> None:
    queue.delay_many(tasks.mail.welcome.call(user_id, 'de') for user_id in user_ids)


if __name__ == '__main__':
    sign_up(42)
    buy(42)
    greet_all([1, 2])
    print('python: delayed 5 calls', flush=True)
