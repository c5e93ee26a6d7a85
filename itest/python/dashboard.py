"""Uses the client of the dashboard's API: python dashboard.py URL TOKEN."""

import sys
import threading

from godelayed.dashboard import Dashboard, DashboardError

dashboard = Dashboard(sys.argv[1], sys.argv[2])
assert [q['name'] for q in dashboard.queues()] == ['mail'], dashboard.queues()
id = dashboard.enqueue('mail.Welcome', 42, 'en', id='a/b', in_='1h')
assert id == 'a/b', id
assert dashboard.task(id)[0]['args'] == [42, 'en']
assert [t['id'] for t in dashboard.tasks('mail', 'scheduled', limit=1)] == [id]
for n in range(3):
    dashboard.enqueue('mail.Welcome', n, 'en', in_='2h')
assert len(list(dashboard.tasks('mail', 'scheduled', limit=1, function='mail.Welcome'))) == 4
report = dashboard.act('run', 'mail', [id, 'none'])
assert report['done'] == 1, report
assert report['failed'][0]['id'] == 'none', report

seen = threading.Event()


def busy() -> None:
    """Let tasks end until somebody has seen that."""
    while not seen.wait(0.1):
        dashboard.enqueue('mail.Welcome', 1, 'en')


thread = threading.Thread(target=busy)
thread.start()
try:
    event = next(dashboard.events('mail', kinds=['done']))
finally:
    seen.set()
    thread.join()
assert event['kind'] == 'task done', event
try:
    dashboard.enqueue('mail.Welcome', 'x')
except DashboardError as err:
    assert err.status == 400, err
    assert 'expected' in str(err), err
else:
    raise AssertionError('wrong arguments were taken')
print('all is well')
