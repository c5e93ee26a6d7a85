"""Texts for logs and for what is kept of a task: control characters from messages and errors are escaped."""

from __future__ import annotations

import logging
import re
from textwrap import indent

# C0, DEL, C1, and the line and paragraph separators of Unicode.
_CONTROL = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029]')
# Besides, marks that turn the direction of writing, so that a text looks like another one, and lone surrogates, which
# stand for bytes that are no UTF-8 and cannot be written.
_BESIDES = '\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff'
_MISLEADS = re.compile(f'[\x00-\x1f\x7f-\x9f\u2028\u2029{_BESIDES}]')
_MISLEADS_IN_LINES = re.compile(f'[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BESIDES}]')
_MOST_LOGGED = 1024  # characters of an id or a name in a log line
_MOST_OF_A_LINE = 16384  # characters of a whole log line, and of the traceback below it
_ARGUMENTS = ', with args beginning with'  # errors of Redis quote the arguments of the command, which contain the task


def one_line(text: str) -> str:
    """Returns text with its control characters and marks of direction escaped as in Python, such as \
    .
    """
    return _MISLEADS.sub(_escape, text)


def lines(text: str) -> str:
    """Is one_line for a text of several lines, such as a stack: it keeps line feeds and tabs."""
    return _MISLEADS_IN_LINES.sub(_escape, text)


def is_text(value: object) -> bool:
    """Returns whether value is a str that can be encoded in UTF-8; a str with lone surrogates cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def has_control(text: str) -> bool:
    """Returns whether text contains control characters."""
    return _CONTROL.search(text) is not None


def _escape(found: re.Match[str]) -> str:
    return repr(found.group())[1:-1]


def of_redis(error: BaseException) -> str:
    """Returns the text of an error of Redis, without the arguments that Redis quotes."""
    return str(error).partition(_ARGUMENTS)[0] or type(error).__name__


def _short(value: object) -> object:
    return _cut(value, _MOST_LOGGED) if isinstance(value, str) else value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f'{text[:most]}… ({len(text)} characters)'


class OneLine(logging.Filter):
    """Escapes the control characters in records of a logger, and indents tracebacks, so that texts from a task cannot
    look like lines of the log.

    It shortens ids and names that are too long, because anybody who can write to Redis can choose them. A traceback
    that comes as text, as that of a task does, is treated like one of an exception.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_short(a) for a in record.args)
        record.msg, record.args = one_line(_cut(record.getMessage(), _MOST_OF_A_LINE)), ()
        traceback: str = vars(record).pop('traceback', '')
        if record.exc_info and not record.exc_text:
            traceback = logging.Formatter().formatException(record.exc_info)
        if traceback:
            record.exc_text = indent(lines(_cut(traceback.rstrip('\n'), _MOST_OF_A_LINE)), '  ')
        return True
