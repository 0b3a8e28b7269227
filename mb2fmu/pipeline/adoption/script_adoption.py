"""Adopt a script: run it in a process of its own, and write the model file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mb2fmu.errors import Fault, ModelError
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
from mb2fmu.model.script_import.script_code_preparation import format_script_line
from mb2fmu.pipeline.adoption.adopted_script_result import MODEL_FILE, AdoptedModelFile
from mb2fmu.temporary_files import make_temporary_folder

_ANALYSIS_ALLOWANCE_S = 240.0
"""How long adoption itself may take beside the script, in s; then it fails."""


def adopt(
    script: Path | str,
    output: Path | str | None = None,
    *,
    label: str | None = None,
    time_limit: float = 60.0,
    inline: bool = False,
    overwrite: bool = False,
) -> tuple[Path, AdoptedModelFile]:
    r"""Write a model file for a SymPy script, which stays as it is.

    Args:
        script: A script or notebook that makes a ``System``, ``KanesMethod``, ``LagrangesMethod`` or ``JointsMethod``.
        output: The model file; None: ``<script>_model.py`` beside the script.
        label: Variable of the mechanics, where the script makes several; None: the last one that it forms.
        time_limit: Of the script, s.
        inline: Whether the script's lines stand in the model file, which then needs no script.
        overwrite: Whether a model file that is there already is replaced, with all that was edited in it.

    Returns:
        The model file, and what was found: ``record.missing`` names what has no value yet.

    Raises:
        ModelError: If the script cannot be run, or makes no mechanics; if the model file is there already. Nothing is
            written then.

    Example:
        >>> import pathlib, tempfile, mb2fmu
        >>> lines = [
        ...     "from sympy.physics.mechanics import *",
        ...     "q, u = dynamicsymbols('q u')",
        ...     "N, P = ReferenceFrame('N'), Point('P')",
        ...     "P.set_vel(N, u * N.x)",
        ...     "kane = KanesMethod(N, [q], [u], [q.diff() - u])",
        ...     "kane.kanes_equations([Particle('p', P, 2)], [(P, -q * N.x)])",
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     script = pathlib.Path(folder, "mass.py")
        ...     _ = script.write_text("\n".join(lines))
        ...     path, record = mb2fmu.adopt(script)
        >>> path.name, record.kind, record.missing
        ('mass_model.py', 'a KanesMethod', ())
    """
    script = Path(script)
    output = script.with_name(f"{script.stem}_model.py") if output is None else Path(output)
    _refuse_to_destroy(script, output, overwrite=overwrite)
    record = _run_worker(script, output, label, time_limit, inline=inline)
    record = replace(record, faults=tuple(fault.replace(MODEL_FILE, output.name) for fault in record.faults))
    write_file_atomically(output, record.text.encode())
    return output, record


def _refuse_to_destroy(script: Path, output: Path, *, overwrite: bool) -> None:
    """Refuse a model file that would replace the script, or a file that may have been edited."""
    if output.resolve() == script.resolve():
        faults = [Fault("it is the script itself", str(output), "choose another file by -o")]
    elif output.is_file() and not overwrite:
        faults = [Fault("it is there already", str(output), "choose another file by -o, or replace it by --force")]
    else:
        return
    raise ModelError("the model file would replace another one:", faults)


def _run_worker(script: Path, output: Path, label: str | None, limit: float, *, inline: bool) -> AdoptedModelFile:
    """Return what the worker found."""
    reference = os.path.relpath(script.resolve(), output.resolve().parent)
    name = _model_name(script.stem)
    with make_temporary_folder("adopt the script") as folder:
        place = folder / "result.json"
        command = [sys.executable, "-m", "mb2fmu.pipeline.adoption.script_adoption_process"]
        command += [str(script.resolve()), reference, name, label or "", str(limit)]
        command += ["inline" if inline else "", str(place)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        root = str(Path(__file__).parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own worker
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(timeout=limit + _ANALYSIS_ALLOWANCE_S)
            except subprocess.TimeoutExpired:
                what = f"adoption takes longer than {_ANALYSIS_ALLOWANCE_S:g} s beside the script"
                fault = Fault(what, script.name, "write the model file by hand: docs/tutorials/sympy_scripts.md")
                raise ModelError(f"{script.name} cannot be adopted:", [fault]) from None
            finally:
                _end_group(process)
        written = (folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        if not place.is_file():
            _raise_if_endless(script, limit, Path(f"{place}.trace"))
            what = f"its process ended with exit code {process.returncode}"
            what += f": {written.splitlines()[-1]}" if written else ""
            raise _make_error(f"{script.name} cannot be adopted:", [Fault(what, script.name)], written)
        result = json.loads(place.read_text(encoding="utf-8"))
    if "record" not in result:
        raise _make_error(result["headline"], [Fault(**fault) for fault in result["faults"]], written)
    return _as_record(result["record"])


def _make_error(headline: str, faults: list[Fault], written: str) -> ModelError:
    """Return an error whose traceback ends with what the script's process wrote, its own traceback last."""
    error = ModelError(headline, faults)
    if written:
        error.add_note(f"The script's process wrote:\n{written}")
    return error


def _model_name(stem: str) -> str:
    """Return an FMU model name for a file's name: ``DoublePendulum`` for ``double_pendulum``."""
    joined = "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", stem))
    return joined if re.match("[A-Za-z]", joined) else f"Script{joined}"


def _as_record(facts: dict[str, Any]) -> AdoptedModelFile:
    """Return a record from JSON, whose lists were tuples."""
    plain: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in facts.items()}
    return AdoptedModelFile(**plain)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the worker and what the script started."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _raise_if_endless(script: Path, limit: float, trace: Path) -> None:
    """Raise, with its line, if the worker ended a script that no interrupt ends."""
    text = trace.read_text(encoding="utf-8", errors="replace") if trace.is_file() else ""
    steps = re.findall(r'File "([^"]*)", line (\d+)', text)
    lines = [format_script_line(name, int(line)) for name, line in steps if name.startswith(str(script.resolve()))]
    if text:
        where = lines[0] if lines else script.name
        fault = Fault(f"the time limit of {limit:g} s ended it here", where, "give it more by --time, or shorten it")
        raise ModelError(f"{script.name} does not end:", [fault])
