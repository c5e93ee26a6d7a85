"""Asks the dashboard's API, as docs/API.md describes it.

    dashboard = Dashboard('https://example.com/queues', token)
    for queue in dashboard.queues():
        print(queue['name'], queue['pending'])

Documents are dicts, as JSON has them. It needs neither Redis nor the other modules of this package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http.client import HTTPResponse
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

Document = dict[str, Any]


class DashboardError(Exception):
    """The dashboard has refused a request. The text says what it expected."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Dashboard:
    """The API of a dashboard at a URL, for the user with a token."""

    def __init__(self, url: str, token: str, timeout: float = 30) -> None:
        self._root = url.rstrip('/') + '/api/v1/'
        self._token = token
        self._timeout = timeout

    def queues(self) -> list[Document]:
        """List all queues with what they hold."""
        return cast('list[Document]', self.call('GET', 'queues')['queues'])

    def tasks(self, queue: str, state: str, limit: int = 100, **filters: Any) -> Iterator[Document]:
        """Yield the tasks of a queue in a state, page by page. Filters are those of addresses: error='timeout'."""
        cursor = ''
        while True:
            query = {'queue': queue, 'state': state, 'limit': limit, **filters}
            if cursor:
                query['cursor'] = cursor
            page = self.call('GET', 'tasks', query)['lists'][0]
            yield from page['tasks']
            cursor = page['cursor']
            if not cursor:
                return

    def task(self, id: str, queue: str = '') -> list[Document]:
        """Return the tasks with an id: one in each queue at most."""
        found = self.call('GET', f'tasks/{_escape(id)}', {'queue': queue} if queue else None)
        return cast('list[Document]', found['tasks'])

    def act(self, action: str, queue: str, ids: Sequence[str], **how: str) -> Document:
        """Run, archive, cancel, delete, reschedule (when='15m') or move (to='slow') tasks; return the report."""
        body = {'action': action, 'queue': queue, 'ids': list(ids), **how}
        return cast('Document', self.call('POST', 'actions', body=body)['reports'][0])

    def enqueue(
        self, function: str, *args: Any, queue: str = '', kwargs: Document | None = None, **options: Any
    ) -> str:
        """Enqueue a call and return its id. Options are those of the API: in_='15m', max_retry=3, id='a'."""
        body: Document = {'function': function, 'args': list(args)}
        if queue:
            body['queue'] = queue
        if kwargs is not None:
            body['kwargs'] = kwargs
        body['options'] = {name.rstrip('_'): value for name, value in options.items()}
        return cast('str', self.call('POST', 'tasks', body=body)['id'])

    def events(self, *queues: str, kinds: Sequence[str] = ()) -> Iterator[Document]:
        """Yield what happens in the workers of queues, of all if none is named, until the connection ends."""
        query = {'queue': list(queues), 'kind': list(kinds)}
        with self._open('GET', 'events', query) as answer:
            kind = ''
            for raw in answer:
                name, _, value = raw.decode().rstrip('\r\n').partition(': ')
                if name == 'event':
                    kind = value
                elif name == 'data':
                    document = json.loads(value)
                    if kind == 'problem':
                        raise DashboardError(document['status'], document['detail'])
                    yield document
                elif not name:
                    kind = ''

    def call(self, method: str, path: str, query: Document | None = None, body: Document | None = None) -> Document:
        """Send a request to a path below api/v1 and return the document that it answers."""
        with self._open(method, path, query, body) as answer:
            return cast('Document', json.load(answer))

    def _open(
        self, method: str, path: str, query: Document | None = None, body: Document | None = None
    ) -> HTTPResponse:
        url = self._root + path + ('?' + urlencode(query, doseq=True) if query else '')
        headers = {'Authorization': f'Bearer {self._token}'}
        data = None
        if body is not None:
            data, headers['Content-Type'] = json.dumps(body).encode(), 'application/json'
        try:
            return cast('HTTPResponse', urlopen(Request(url, data, headers, method=method), timeout=self._timeout))
        except HTTPError as err:
            with err:
                text = err.read()
            try:
                detail = json.loads(text)['detail']
            except (ValueError, KeyError, TypeError):
                detail = err.reason
            raise DashboardError(err.code, detail) from None


def _escape(part: str) -> str:
    """Escape a part of a path, also one that means a folder."""
    return part.replace('.', '%2E') if part in ('.', '..') else quote(part, safe='')
