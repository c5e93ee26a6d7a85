"""Answers health checks of a worker over HTTP, as Go's workers do with -listen."""

from __future__ import annotations

import http.server
import json
import socket
import socketserver
import threading
import time
from typing import TYPE_CHECKING, Any

from .errors import ArgumentsError

if TYPE_CHECKING:
    from .worker import Worker


def address(text: str) -> tuple[str, int]:
    """Parses host:port; without a host it is every address of the machine."""
    host, colon, port = text.rpartition(':')
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ArgumentsError(f'--listen {text!r}: expected host:port, such as localhost:8080 or :8080')
    return host.strip('[]'), int(port)


def listen(worker: Worker, where: tuple[str, int]) -> http.server.ThreadingHTTPServer:
    """Starts a server with the paths /healthz and /readyz, in threads. An OSError says why it cannot."""
    started = time.monotonic()

    def alive() -> str:
        within = time.monotonic() - started < worker.config.seconds('heartbeat_life')
        return '' if worker.connected or within else 'Redis has not confirmed the heartbeat within its life'

    def ready() -> str:
        if worker.state != 'running':
            return worker.state
        return '' if worker.in_touch else 'not connected to Redis'

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10  # seconds for a request

        def do_GET(self) -> None:  # noqa: N802
            check = {'/healthz': alive, '/readyz': ready}.get(self.path.partition('?')[0])
            if check is None:
                self.send_error(404)
                return
            reason = check()
            answer: dict[str, Any] = {'status': 'unavailable', 'reason': reason} if reason else {'status': 'ok'}
            answer |= {'worker': worker.id, 'state': worker.state, 'busy': worker.busy, 'connected': worker.connected}
            body = json.dumps(answer).encode()
            self.send_response(503 if reason else 200)
            for name, value in (
                ('Content-Type', 'application/json'),
                ('Cache-Control', 'no-store'),
                ('Content-Length', str(len(body))),
            ):
                self.send_header(name, value)
            self.end_headers()
            if self.command != 'HEAD':
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ':' in where[0] else socket.AF_INET

        def server_bind(self) -> None:
            socketserver.TCPServer.server_bind(self)  # HTTPServer would ask for the machine's name, which may take long

    server = Server(where, Handler)
    threading.Thread(target=server.serve_forever, name='godelayed-health', daemon=True).start()
    return server
