"""Calls Go functions through the typed module that it makes of functions.json in a folder, and prints what they
return."""

import argparse
import asyncio
import datetime
import sys

import godelayed
import godelayed.stubs
import redis
import redis.asyncio

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--url', required=True)
parser.add_argument('--queue', required=True)
parser.add_argument('--folder', required=True)
args = parser.parse_args()

if godelayed.stubs.main([args.folder + '/functions.json', '-o', args.folder + '/tasks.py']):
    sys.exit(1)
sys.path.insert(0, args.folder)
import tasks  # noqa: E402

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
LINES = [tasks.Line('nut', 3, None), tasks.Line('bolt', 1, 'no rust')]
ORDER = tasks.Order(id=7, lines=LINES, due=WHEN, photo=b'\0\xff')
LIMIT = 60

t = tasks.Tasks(godelayed.Queue(args.queue, redis.Redis.from_url(args.url)))
place = t.stubs.place.options(keep_result=60)
receipt = place.delay(ORDER, 1.5, notes={'a': 1}).result(LIMIT)
assert type(receipt) is tasks.Receipt, receipt
assert receipt.order == ORDER, receipt
print(receipt.total, receipt.notes, receipt.empty)
ref = t.stubs.count.options(keep_result=60).delay()
print(ref.result(LIMIT), t.stubs.count.ref(ref.id).result(LIMIT))
print(t.stubs.count.options(keep_result=60).delay('a', 'b').result(LIMIT))
late = t.stubs.late.options(keep_result=60)
print(late.delay(1).result(LIMIT), late.delay(1, c=True, b='x').result(LIMIT))


async def main():
    async with redis.asyncio.Redis.from_url(args.url) as client:
        a = tasks.AsyncTasks(godelayed.aio.Queue(args.queue, client))
        print(await (await a.stubs.count.options(keep_result=60).delay('c')))


asyncio.run(main())
