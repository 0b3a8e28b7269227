"""Runs what importers and checkers are, each in a process of its own, with a time limit."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

DRIVERS = Path(__file__).parent / "drivers"
TIME_LIMIT = 300


def tool(*command, time_limit=TIME_LIMIT, **more):
    """Output of a program of the environment; fails with all it said if it fails."""
    libraries = Path(sysconfig.get_path("stdlib")).parents[0]
    environment = os.environ | {"LD_LIBRARY_PATH": f"{Path(sys.prefix) / 'lib'}:{libraries}"}
    with tempfile.TemporaryDirectory() as place:  # importers leave what they unpacked
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
            env=environment | {"TMPDIR": place} | more,
        )
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def script(name):
    """A program of the environment."""
    return Path(sys.executable).parent / name


def driver(name, *arguments, **more):
    """One of the drivers beside this file."""
    return tool(sys.executable, DRIVERS / f"{name}.py", *arguments, **more)
