"""How the command delayed-worker writes its log."""

from __future__ import annotations

import datetime
import json
import logging
from textwrap import dedent

from .context import running

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {'message', 'asctime', 'taskName'}


class JsonFormatter(logging.Formatter):
    """Writes each record as one line of JSON, with the names that Go's workers use: time, level and msg.

    There are also logger; traceback, if there is one; what the call of the logger gave as `extra`; and queue, function
    and id of the task that has written it.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        fields: dict[str, object] = {
            'time': at.isoformat(timespec='milliseconds'),
            'level': record.levelname.lower(),
            'msg': record.getMessage(),
            'logger': record.name,
        }
        task = running()
        if task is not None:
            fields |= {'queue': task.queue, 'function': task.path, 'id': task.id}
        fields |= {k: v for k, v in vars(record).items() if k not in _KNOWN}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            fields['traceback'] = dedent(record.exc_text)
        return json.dumps(fields, default=str, skipkeys=True)


def handler(form: str) -> logging.Handler:
    """Returns a handler that writes to standard error, as text or as json."""
    made = logging.StreamHandler()
    made.setFormatter(
        JsonFormatter() if form == 'json' else logging.Formatter('%(asctime)s %(levelname)s %(name)s: %(message)s')
    )
    return made
