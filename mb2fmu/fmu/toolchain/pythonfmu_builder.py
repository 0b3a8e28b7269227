"""pythonfmu: makes Python classes callable through FMI 2.0.

Its builder imports the class it packs and changes ``sys.path`` and ``sys.modules`` on the way, so it runs in a
process of its own.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from mb2fmu.errors import Fault, ToolError, describe_process_end
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.temporary_files import make_temporary_folder

BUILDER_TIME_LIMIT_S = 120.0
"""In s; it usually takes less than one."""

_BUILDER_PROGRAM = """
import sys
from pathlib import Path
from pythonfmu import FmuBuilder

script, destination, *project_files = map(Path, sys.argv[1:])
FmuBuilder.build_FMU(script, dest=destination, project_files=project_files)
"""


def run_pythonfmu_builder(sources: InMemoryFileTree, script: str) -> bytes:
    """Pack Python sources with pythonfmu.

    Args:
        sources: Files; top-level folders go into the FMU's resources as they are.
        script: Path of the file with the slave class, at the top of ``sources``.

    Returns:
        The archive that pythonfmu made (with the time of day and a random number in it).

    Raises:
        ToolError: If pythonfmu fails.
    """
    with make_temporary_folder("build the FMU") as folder:
        for path in sources:
            file = folder / "sources" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(sources[path])
        others = sorted({path.split("/")[0] for path in sources} - {script})
        result = folder / "unit.fmu"
        # -P: no module of the current folder; -B: no compiled files; -W: pythonfmu's warnings are its own affair.
        command = [
            sys.executable,
            "-P",
            "-B",
            "-W",
            "ignore",
            "-c",
            _BUILDER_PROGRAM,
            str(folder / "sources" / script),
            str(result),
        ]
        command += [str(folder / "sources" / other) for other in others]
        try:
            done = subprocess.run(  # noqa: S603 (our own interpreter, our own files)
                command, cwd=folder, capture_output=True, text=True, timeout=BUILDER_TIME_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as late:
            fault = Fault(
                f"it did not finish within {BUILDER_TIME_LIMIT_S} s", "FmuBuilder.build_FMU",
                "run it again when the machine is less busy, or take --backend native",
            )  # fmt: skip
            raise ToolError(f"pythonfmu {pythonfmu_version()} could not build the FMU:", [fault]) from late
        if done.returncode != 0 or not result.is_file():
            raise ToolError(
                f"pythonfmu {pythonfmu_version()} could not build the FMU:",
                [
                    Fault(describe_process_end(done.returncode), "FmuBuilder.build_FMU"),
                    *(Fault(text.strip(), stream) for stream, text in _nonempty_streams(done) if text.strip()),
                ],
            )
        return result.read_bytes()


def pythonfmu_version() -> str:
    """Return the version of the installed pythonfmu."""
    return importlib.metadata.version("pythonfmu")


def read_pythonfmu_licence() -> bytes:
    """Return the licence under which pythonfmu's files may be passed on.

    Raises:
        ToolError: If the installed package does not contain it.
    """
    for file in importlib.metadata.files("pythonfmu") or ():
        if file.name == "LICENSE":
            return Path(str(file.locate())).read_bytes().replace(b"\r\n", b"\n")
    raise ToolError("the installed pythonfmu has no licence file; reinstall it")


def _nonempty_streams(done: subprocess.CompletedProcess[str]) -> tuple[tuple[str, str], ...]:
    """Return what a process printed, by the stream's name."""
    return ("standard error", done.stderr), ("standard output", done.stdout)
