"""An HTTP server on this machine that serves one file, well or badly; what it was asked is kept."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Behaviour:
    """What is served, and what goes wrong."""

    content: bytes = b""
    status: int = 200
    location: str = ""
    """Where a redirect leads."""
    tag: str = '"one"'
    changed: str = ""
    ranges: bool = True
    length: bool = True
    cut: list[int] = field(default_factory=list)
    """After how many bytes of the body the answers break off, one after another; then they are whole."""
    always_cut: int | None = None
    shifted: int = 0
    """By how many bytes a part begins too early."""
    stall: float = 0.0
    """Seconds without a byte before the second half of the body."""
    pause: float = 0.0
    """Seconds between pieces of 16 KB."""
    asked: list[str | None] = field(default_factory=list)
    """The `Range` of every request."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        how: Behaviour = self.server.behaviour  # type: ignore[attr-defined]
        wanted = self.headers.get("Range")
        how.asked.append(wanted)
        self.close_connection = True
        if how.status != 200:
            self.send_response(how.status)
            if how.location:
                self.send_header("Location", how.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        begin = 0
        if how.ranges and wanted and self.headers.get("If-Range") in (how.tag, how.changed):
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        body = how.content[max(0, begin - how.shifted) :]
        self.send_response(206 if begin else 200)
        if begin:
            at = begin - how.shifted
            self.send_header("Content-Range", f"bytes {at}-{len(how.content) - 1}/{len(how.content)}")
        for name, value in (("ETag", how.tag), ("Last-Modified", how.changed)):
            if value:
                self.send_header(name, value)
        if how.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = how.cut.pop(0) if how.cut else how.always_cut
        self._send(body if cut is None else body[:cut], how)

    def _send(self, body: bytes, how: Behaviour) -> None:
        with contextlib.suppress(ConnectionError):  # whoever asked may have been killed
            for place in range(0, len(body), 1 << 14):
                if how.stall and place >= len(body) // 2:
                    time.sleep(how.stall)
                self.wfile.write(body[place : place + (1 << 14)])
                time.sleep(how.pause)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """The address of the server while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.behaviour = behaviour  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
