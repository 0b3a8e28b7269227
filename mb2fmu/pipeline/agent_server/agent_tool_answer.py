"""Run a command of mb2fmu in a process of its own, and form the answer of a tool: text, facts and verdict."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mb2fmu.temporary_files import make_temporary_folder

_REFUSED: Mapping[int, str] = {2: "refused", 3: "a tool failed", 70: "a fault of mb2fmu itself"}
"""Exit code → verdict, for every command."""
NOT_FINISHED = "not finished"
_POLL_INTERVAL_S = 0.05
_END_ALLOWANCE_S = 1.5
"""How long a command may take to end what it has started, in s."""
MAX_TEXT_CHARACTERS = 20_000
"""Of an answer; its end is kept, where the verdict stands."""


@dataclass(frozen=True, slots=True)
class AgentToolAnswer:
    """What a tool answers.

    Attributes:
        verdict: In words, such as ``validated``, ``refused``.
        text: As a terminal shows it.
        is_good: The tool did what it was called for, and what it judged has passed.
        facts: For programs; numbers of the command.
    """

    verdict: str
    text: str
    is_good: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def format_text(self) -> str:
        """Return the text, which ends in the verdict."""
        text = self.text
        if len(text) > MAX_TEXT_CHARACTERS:
            left_out = len(text) - MAX_TEXT_CHARACTERS
            text = f"[the first {left_out:,} characters are left out]\n{text[left_out:]}"
        return f"{text}\n\nVerdict: {self.verdict}".strip()

    def format_facts(self) -> dict[str, Any]:
        """Return the facts, with the verdict."""
        return {"verdict": self.verdict, "good": self.is_good, **self.facts}


async def run_command_for_agent(
    folder: Path,
    arguments: Sequence[str],
    verdicts: Mapping[int, str],
    select_facts: Callable[[dict[str, Any]], dict[str, Any]],
    time_limit: float,
) -> AgentToolAnswer:
    """Run ``mb2fmu COMMAND --json FILE …`` and return what it says; a cancelled call ends the command.

    Args:
        folder: Where it runs.
        arguments: Command, files and options.
        verdicts: Exit code → verdict; 0 is good.
        select_facts: Returns what is reported of the command's JSON.
        time_limit: In s; the command and all its processes are ended then.
    """
    with make_temporary_folder("answer a tool call") as scratch:
        place, log = scratch / "facts.json", scratch / "text"
        command = [sys.executable, "-P", "-m", "mb2fmu", arguments[0], "--json", str(place), *arguments[1:]]
        code = await _run_process(command, folder, log, time_limit)
        text = log.read_text(encoding="utf-8", errors="replace").strip().replace(f"{folder}{os.sep}", "")
        facts: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            facts = select_facts(json.loads(place.read_text(encoding="utf-8")))
    if code is None:
        reason = f"it was ended after {time_limit:g} s; a longer time_limit, or a smaller model, may help"
        return AgentToolAnswer(NOT_FINISHED, f"{text}\n{reason}".strip(), facts=facts)
    verdict = verdicts.get(code) or _REFUSED.get(code, f"ended with exit code {code}")
    return AgentToolAnswer(verdict, text, is_good=code == 0, facts=facts)


async def _run_process(command: Sequence[str], folder: Path, log: Path, time_limit: float) -> int | None:
    """Return the exit code of a process; None if it was ended for its time."""
    with log.open("wb") as text:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - starts at once; our own interpreter and command
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=text, stderr=text, start_new_session=True
        )
    end = time.monotonic() + time_limit
    try:
        while process.poll() is None and time.monotonic() < end:  # noqa: ASYNC110 - processes set no event
            await asyncio.sleep(_POLL_INTERVAL_S)
        return process.poll()
    finally:
        _end_processes(process)


def _end_processes(process: subprocess.Popen[bytes]) -> None:
    """End a command; it ends its own processes. Then kill what is left of its process group."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_END_ALLOWANCE_S)
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
