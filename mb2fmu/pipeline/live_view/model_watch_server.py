"""``serve_model_watch_page``: the page of a watched model at 127.0.0.1, until it is interrupted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from mb2fmu.errors import Fault, ToolError
from mb2fmu.pipeline.live_view.watched_model import WatchedModelFile
from mb2fmu.temporary_files import make_temporary_folder

HOST = "127.0.0.1"


class _LiveViewServer(ThreadingHTTPServer):
    """Serves the page, the state as JSON, the motion and the report."""

    daemon_threads = True

    def __init__(self, port: int, model: WatchedModelFile) -> None:
        super().__init__((HOST, port), _LiveViewRequestHandler)
        self.model = model

    @property
    def names(self) -> set[str]:
        """Names by which browsers on this machine call the server; other names come from foreign pages."""
        return {f"{host}:{self.server_port}" for host in (HOST, "localhost")}


class _LiveViewRequestHandler(BaseHTTPRequestHandler):
    server: _LiveViewServer

    def do_GET(self) -> None:
        """Answer a request of the page."""
        if self.headers.get("Host", "") not in self.server.names:
            self._answer(b"", "text/plain", HTTPStatus.FORBIDDEN)
            return
        state = self.server.model.state
        match self.path.partition("?")[0]:
            case "/":
                from mb2fmu.report.pages.model_watch_page import render_model_watch_page

                self._answer(render_model_watch_page(self.server.model.path.name), "text/html")
            case "/state":
                shown = {
                    "version": state.version, "message": state.message, "verdict": state.verdict,
                    "text": state.verdict_text, "report": bool(state.report),
                }  # fmt: skip
                self._answer(json.dumps(shown).encode(), "application/json")
            case "/motion.html" if state.motion:
                self._answer(state.motion, "text/html")
            case "/report.html" if state.report:
                self._answer(state.report, "text/html")
            case _:
                self._answer(b"", "text/plain", HTTPStatus.NOT_FOUND)

    def _answer(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Send content that no browser keeps."""
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the page asks several times per second."""


def serve_model_watch_page(
    path: Path,
    *,
    port: int = 0,
    validates: bool = True,
    at: Mapping[str, str] | None = None,
    arguments: Mapping[str, str] | None = None,
    on_start: Callable[[str], None] = lambda _: None,
) -> None:
    """Show a model's motion and verdict on a page, and renew it when the file is saved, until interrupted.

    Args:
        path: A model file or robot description.
        port: Of the page; 0: any free one.
        validates: A validation follows each motion.
        at: FMU name → value instead of the model's, as text.
        arguments: Of the model function.
        on_start: Receives the address of the page.

    Raises:
        ToolError: If the port is taken.
        KeyboardInterrupt: At the end.
    """
    with make_temporary_folder("validate the model") as folder:
        model, ended = WatchedModelFile(path, folder, validates, at or {}, arguments or {}), threading.Event()
        try:
            server = _LiveViewServer(port, model)
        except OSError as error:
            fault = Fault(error.strerror or str(error), f"port {port}", "leave out --port: a free one is taken")
            raise ToolError("the page cannot be served:", [fault]) from error
        with server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            on_start(f"http://{HOST}:{server.server_port}/")
            try:
                model.follow(ended)
            finally:
                ended.set()
                server.shutdown()
                thread.join()
