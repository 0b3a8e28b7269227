"""``WatchedModelFile``: a model file, its last motion, and the validation that runs behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from mb2fmu.errors import Mb2FmuError
from mb2fmu.pipeline.display.mechanism_animation import animate

VerdictState = Literal["none", "pending", "good", "bad"]
POLL_INTERVAL = 0.25
"""Time between two looks at the files, s."""


@dataclass(frozen=True, slots=True)
class WatchedModelStatus:
    """What the page shows.

    Attributes:
        version: Grows with every motion that is shown.
        message: What is wrong with the model; empty if nothing is.
        verdict: Of the validation: none, running, passed or not.
        verdict_text: As the command ``run`` prints it.
        motion: The page of the motion; empty before the first one.
        report: The report of the validation; empty where there is none.
    """

    version: int = 0
    message: str = ""
    verdict: VerdictState = "none"
    verdict_text: str = ""
    motion: bytes = b""
    report: bytes = b""


@dataclass
class WatchedModelFile:
    """A model file that somebody edits.

    Attributes:
        path: Of the model file or robot description.
        folder: For the results of validations; the caller removes it.
        validates: A validation follows each motion.
        at: FMU name → value instead of the model's, as text.
        arguments: Of the model function.
        state: What is shown now; replaced as a whole.
    """

    path: Path
    folder: Path
    validates: bool = True
    at: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    state: WatchedModelStatus = field(default_factory=WatchedModelStatus)
    _seen: dict[Path, int] = field(default_factory=dict)
    _validation: subprocess.Popen[bytes] | None = None
    _runs: int = 0

    def follow(self, ended: threading.Event) -> None:
        """Renew the state whenever a file changes, until ``ended`` is set; a running validation ends with it."""
        try:
            while not ended.wait(POLL_INTERVAL if self._seen else 0.0):
                self.renew()
        finally:
            self._stop_validation()

    def renew(self) -> None:
        """Look at the files once: show a new motion, or a validation that has ended."""
        stamps = self._read_time_stamps()
        if stamps != self._seen:
            self._seen = stamps
            self._stop_validation()
            self._show_motion()
        elif self._validation is not None and self._validation.poll() is not None:
            self._show_verdict(self._validation.returncode)

    def _read_time_stamps(self) -> dict[Path, int]:
        """Return when each file that makes the model was written: the model, its side files, modules beside it."""
        folder = self.path.resolve().parent
        beside = [self.path.with_suffix(".toml"), folder / "robot.toml"]
        if self.path.suffix == ".py":
            beside += folder.glob("*.py")
        stamps = {}
        for file in (self.path, *beside):
            try:
                stamps[file.resolve()] = file.stat().st_mtime_ns
            except OSError:  # an editor replaces it just now, or it is not there
                continue
        return stamps

    def _show_motion(self) -> None:
        """Simulate the model and show its motion, or what is wrong with it."""
        try:
            motion = animate(self.path, at=self.at, arguments=self.arguments).page().content
        except (Mb2FmuError, OSError) as error:
            self.state = replace(self.state, message=str(error), verdict="none", verdict_text="", report=b"")
            return
        self.state = WatchedModelStatus(self.state.version + 1, motion=motion)
        if self.validates:
            self._start_validation()

    def _start_validation(self) -> None:
        """Validate the model in a process of its own."""
        self._runs += 1
        results = self._results_folder
        results.mkdir()
        command = [sys.executable, "-P", "-m", "mb2fmu", "run", str(self.path.resolve()), "-o", str(results)]
        for option, values in (("--at", self.at), ("--set", self.arguments)):
            command += [word for name, value in values.items() for word in (option, f"{name}={value}")]
        with (results / "verdict.txt").open("wb") as text:
            self._validation = subprocess.Popen(  # noqa: S603  our own interpreter and command
                command, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.state = replace(self.state, verdict="pending")

    @property
    def _results_folder(self) -> Path:
        """Of the present validation."""
        return self.folder / str(self._runs)

    def _show_verdict(self, exit_code: int) -> None:
        """Show what the validation says."""
        results, self._validation = self._results_folder, None
        text = (results / "verdict.txt").read_text(encoding="utf-8", errors="replace").replace(f"{results}/", "")
        report = next(results.glob("*.html"), None)
        self.state = replace(
            self.state,
            verdict="bad" if exit_code else "good",
            verdict_text=text.strip(),
            report=report.read_bytes() if report else b"",
        )

    def _stop_validation(self) -> None:
        """End a validation that is running, with all its processes."""
        process, self._validation = self._validation, None
        if process is None or process.poll() is not None:
            return
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.terminate()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
