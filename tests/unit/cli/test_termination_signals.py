"""A signal that requests the end reaches the command, also where code of others catches every exception."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such signals")

COMMAND = """
import signal, sys, time
from mb2fmu.cli.termination_signals import get_signal_exit_code, raise_on_termination_signals

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests with nohup bequeaths that it is ignored
raise_on_termination_signals()
steps = []

def catch_everything():
    try:
        signal.raise_signal(signal.{name})
        steps.append("after the signal")
    except:
        steps.append("caught")

class Watched:
    def __del__(self):
        signal.raise_signal(signal.{name})
        steps.append("after the signal")

def clean_up():
    try:
        signal.raise_signal(signal.{name})
    finally:
        signal.raise_signal(signal.{name})  # a second request
        steps.append("cleaned up")

try:
    {body}
    time.sleep(30)
    steps.append("went on")
except KeyboardInterrupt as error:
    code = get_signal_exit_code(error)
    signal.raise_signal(signal.{name})  # one that comes too late
    print(*steps, error, sep=", ")
    sys.exit(code)
"""


@pytest.mark.parametrize(
    ("body", "name", "printed", "code"),
    [
        ("catch_everything()", "SIGTERM", "caught, ended by SIGTERM", 143),
        ("Watched()", "SIGTERM", "ended by SIGTERM", 143),
        ("clean_up()", "SIGHUP", "cleaned up, ended by SIGHUP", 129),
    ],
)
def test_a_request_to_end_reaches_the_command_once(body: str, name: str, printed: str, code: int) -> None:
    command = [sys.executable, "-c", COMMAND.format(body=body, name=name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.returncode) == (printed, code), done.stderr
