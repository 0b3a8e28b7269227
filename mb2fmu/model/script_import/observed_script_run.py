"""Run a script under observation, up to its first integration."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from sympy.physics.mechanics import KanesMethod
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.script_import.created_mechanics_observation import (
    CreatedScriptMechanics,
    make_unnamed_mechanics_label,
    record_created_mechanics,
)
from mb2fmu.model.script_import.integrator_call_recording import (
    ScriptIntegratorCallRecord,
    ScriptStopSignal,
    make_package_stand_ins,
    record_integrator_calls,
)
from mb2fmu.model.script_import.observed_script_values import (
    ScriptSymbolValues,
    list_module_variables,
    make_recording_builtin_zip,
    record_script_values,
)
from mb2fmu.model.script_import.script_code_preparation import (
    NOTE_FUNCTION,
    ScriptCodePart,
    add_local_variable_recording,
    format_script_line,
    read_script_parts,
)
from mb2fmu.model.script_import.script_mechanics_makers import call_script_mechanics_makers
from mb2fmu.model.script_import.script_sandbox import enter_script_sandbox, make_script_builtins
from mb2fmu.model.script_import.stand_in_packages import install_package_stand_ins
from mb2fmu.temporary_files import make_temporary_folder


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """What a script made.

    Attributes:
        path: The script.
        mechanics: Label (a variable's name, or ``KanesMethod[2]``) → the object, in order of making.
        complete: Labels of those whose equations were requested, the last one last.
        values: Which numbers it gave to which symbols.
        integration: The first integration.
        error: What it raised after it had made mechanics; None if it ended or was ended.
        namespaces: Variables of its modules and functions; the script's own last.
        ended: Part and line at the script's top level where the wanted object was complete; None if it never was.
        called: Which function was called, with which symbols, that the script does not call itself; empty if none.
    """

    path: Path
    mechanics: dict[str, Any]
    complete: tuple[str, ...]
    values: ScriptSymbolValues
    integration: ScriptIntegratorCallRecord
    error: Fault | None
    namespaces: tuple[dict[str, Any], ...]
    ended: tuple[str, int] | None = None
    called: str = ""


def run_script(
    path: Path, *, defer: bool = True, until: str | None = None, guard: AbstractContextManager[None] | None = None
) -> ScriptRun:
    """Run a script up to its first integration, or up to where one object of its mechanics is complete.

    Args:
        path: The script or notebook.
        defer: Whether SymPy's forming of equations is put off.
        until: Label of the object that is wanted; None: run to the first integration.
        guard: Entered while the script's code runs; its ``KeyboardInterrupt`` ends the script at its line.

    Returns:
        What it made.

    Raises:
        ModelError: If it cannot be read, or raises before it made any mechanics.
    """
    path = path.resolve()
    parts = read_script_parts(path)
    noted, values, integration = (
        CreatedScriptMechanics(),
        ScriptSymbolValues(is_deferred=defer),
        ScriptIntegratorCallRecord(),
    )
    integration.ready = lambda: any(has_known_mechanics(made) for made in noted.objects)
    variables: dict[str, Any] = {"__name__": "__main__", "__file__": str(path), NOTE_FUNCTION: values.note_locals}
    if (path.parent / "__init__.py").is_file():
        variables["__package__"] = path.parent.name  # from .sibling import …
    if until is not None:
        noted.on_completion = _end_at(noted, until, variables)
    error: Fault | None = None
    called = ""
    ended: tuple[str, int] | None = None
    time_symbol = dynamicsymbols._t  # noqa: SLF001 - scripts replace it
    with ExitStack() as stack:
        scratch = stack.enter_context(make_temporary_folder("run the script"))
        stack.enter_context(enter_script_sandbox(path, scratch))
        variables["__builtins__"] = make_script_builtins(make_recording_builtin_zip(values))
        stack.enter_context(install_package_stand_ins(make_package_stand_ins(integration, values)))
        stack.enter_context(_main_module(variables))
        stack.enter_context(record_created_mechanics(noted, defer=defer))
        stack.enter_context(record_script_values(values, (str(path.parent),)))
        stack.enter_context(record_integrator_calls(integration, values))
        try:
            with guard or nullcontext():
                called = _run_parts(parts, variables, noted)
        except (ScriptStopSignal, SystemExit) as end:
            ended = _top_level_line(end.__traceback__, path)
        except (Exception, KeyboardInterrupt) as raised:
            _note_frames(values, raised.__traceback__, path)
            error = _script_fault(path, raised)
            if not noted.objects:
                dynamicsymbols._t = time_symbol  # noqa: SLF001 - scripts replace it
                raise ModelError(f"{path.name} ends before it has made any mechanics:", [error]) from raised
        values.namespaces.append(list_module_variables(variables))
        values.read_namespaces()
    labels = _label_mechanics(noted, values.namespaces)
    if until is not None and noted.wanted is not None:
        labels[until] = noted.wanted
    complete = [label for made in noted.complete for label, other in labels.items() if other is made]
    return ScriptRun(path, labels, tuple(complete), values, integration, error, tuple(values.namespaces), ended, called)


def _top_level_line(step: TracebackType | None, path: Path) -> tuple[str, int] | None:
    """Return the part and line of the script's top level in a traceback."""
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename.startswith(str(path)) and code.co_name == "<module>":
            return code.co_filename, step.tb_lineno
        step = step.tb_next
    return None


def _run_parts(parts: Sequence[ScriptCodePart], variables: dict[str, Any], noted: CreatedScriptMechanics) -> str:
    """Run the script's code; return what was called that the script does not call itself."""
    for part in parts:
        exec(compile(add_local_variable_recording(part.tree), part.name, "exec"), variables)  # noqa: S102 - the user's script
    return "" if noted.objects else call_script_mechanics_makers(parts, variables, noted)


def has_known_mechanics(made: Any) -> bool:
    """Return whether an object's mechanics are known: a KanesMethod needs bodies."""
    return not isinstance(made, KanesMethod) or bool(made._bodylist)  # noqa: SLF001 - no public way before forming


def _end_at(noted: CreatedScriptMechanics, until: str, variables: dict[str, Any]) -> Callable[[Any], None]:
    """Return what ends the script when the wanted object is complete."""

    def end(made: Any) -> None:
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - variables of the callers
        names = {make_unnamed_mechanics_label(noted, made)}
        while frame is not None:
            names |= {name for name, value in frame.f_locals.items() if value is made} if frame.f_locals else set()
            frame = frame.f_back
        names |= {name for name, value in variables.items() if value is made}
        if until in names:
            noted.wanted = made
            raise ScriptStopSignal

    return end


@contextmanager
def _main_module(variables: dict[str, Any]) -> Iterator[None]:
    """Make the script's variables those of ``__main__``, where dataclasses and pickle look classes up."""
    module, before = ModuleType("__main__"), sys.modules["__main__"]
    vars(module).update(variables)
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def _note_frames(values: ScriptSymbolValues, step: TracebackType | None, path: Path) -> None:
    """Keep the local variables of the functions that an exception passed through."""
    while step is not None:
        if step.tb_frame.f_code.co_filename.startswith(str(path)):
            values.namespaces.append(list_module_variables(step.tb_frame.f_locals))
        step = step.tb_next


def _script_fault(path: Path, error: BaseException) -> Fault:
    """Return an exception of the script as a fault, at the deepest line in the script's folder."""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename.startswith(str(path.parent))]
    where = format_script_line(steps[-1].filename, steps[-1].lineno or 1) if steps else path.name
    line = _line_text(path, steps[-1].filename, steps[-1].lineno or 1) if steps else ""
    remedy = f"raised by  {line}" if line else ""
    if isinstance(error, KeyboardInterrupt):
        return Fault("the time limit ended it here", where, f"give it more by --time, or shorten it: {line}")
    if isinstance(error, ModuleNotFoundError):
        return Fault(str(error), where, f"install it: the script needs it to make its mechanics ({line})")
    reason = str(error).strip()  # SymPy's messages may begin with an empty line
    message = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return Fault(message.splitlines()[0][:300], where, remedy)


def _line_text(path: Path, name: str, line: int) -> str:
    """Return a line of the script, or of a module beside it."""
    for part in read_script_parts(path) if name.startswith(str(path)) else ():
        lines = part.text.splitlines()
        if part.name == name and 0 < line <= len(lines):
            return lines[line - 1].strip()
    return linecache.getline(name, line).strip()


def _label_mechanics(noted: CreatedScriptMechanics, namespaces: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return label → object: its variable, or ``KanesMethod[2]`` where a variable held several one after the other."""
    spaces = list(namespaces)[::-1]  # the module's own first
    names: list[str | None] = []
    for made in noted.objects:
        bound = [name for space in spaces for name, value in space.items() if value is made and name != "self"]
        names.append(next((name for name in bound if name not in names), None))
    rebound = {type(made).__name__ for made, name in zip(noted.objects, names, strict=True) if name is None}
    return {
        make_unnamed_mechanics_label(noted, made) if name is None or type(made).__name__ in rebound else name: made
        for made, name in zip(noted.objects, names, strict=True)
    }
