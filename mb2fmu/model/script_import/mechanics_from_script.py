"""Fetch mechanics from a script, for the model file that ``mb2fmu adopt`` writes."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import JointsMethod

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.script_import.observed_script_run import run_script
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.parts_mechanics_source import get_method_of_joints_method


class ScriptMechanics:
    """Mechanics of a script, with its symbols and bodies by name.

    Attributes:
        mechanics: A ``System``, ``KanesMethod`` or ``LagrangesMethod``, as the script made it.
    """

    def __init__(self, made: Any) -> None:
        self.mechanics = get_method_of_joints_method(made) if isinstance(made, JointsMethod) else made
        self._symbols: dict[str, Any] = {}
        for symbol in list_mechanics_symbols(self.mechanics):
            self._symbols.setdefault(format_symbol_as_word(symbol), symbol)

    def __getitem__(self, name: str) -> Any:
        """Return the symbol, or function of time, of that name: ``script["m"]``, ``script["q1"]``.

        Raises:
            ModelError: If the mechanics have no such symbol.
        """
        return self._find(name, self._symbols, "symbol")

    def body(self, name: str) -> Any:
        """Return the body of that name.

        Raises:
            ModelError: If the mechanics have no such body.
        """
        bodies = {str(body.name): body for body in mechanics_source.bodies(self.mechanics)}
        return self._find(name, bodies, "body")

    @staticmethod
    def _find(name: str, known: dict[str, Any], kind: str) -> Any:
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=1) or sorted(known)[:8]
        fault = Fault(
            f"the script's mechanics have no {kind} {name!r}", find_user_source_line(), f"it has {', '.join(near)}"
        )
        raise ModelError("the script has changed, or a name is misspelt:", [fault])


def read_script(path: Path | str, name: str) -> ScriptMechanics:
    r"""Run a script up to where its mechanics are complete, and return them.

    SymPy's equations of motion are not formed, plots are drawn nowhere, and files are written nowhere.

    Args:
        path: The script, or notebook; beside the model file if it is relative.
        name: The script's variable that holds the ``System``, ``KanesMethod`` or the like.

    Raises:
        ModelError: If the script cannot be run, or makes no such object.

    Example:
        >>> import pathlib, tempfile, mb2fmu
        >>> lines = [
        ...     "from sympy.physics.mechanics import *",
        ...     "q = dynamicsymbols('q')",
        ...     "oscillator = LagrangesMethod(q.diff()**2 - q**2, [q])",
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     script = pathlib.Path(folder, "mass.py")
        ...     _ = script.write_text("\n".join(lines))
        ...     mechanics = mb2fmu.read_script(script, "oscillator").mechanics
        >>> len(mechanics.q)
        1
    """
    script = Path(path)
    if not script.is_absolute():
        script = _folder_of_caller() / script
    run = run_script(script, until=name)
    if name not in run.mechanics:
        made = ", ".join(run.mechanics) or "none"
        faults = [Fault(f"{script.name} makes no mechanics called {name}", "", f"it makes {made}")]
        raise ModelError("the mechanics cannot be fetched:", faults + ([run.error] if run.error else []))
    return ScriptMechanics(run.mechanics[name])


def list_mechanics_symbols(mechanics: Any) -> list[sm.Expr]:
    """Return every symbol and function of time of the mechanics: coordinates, speeds, then the others by name."""
    speeds = mechanics_source.speeds(mechanics)
    ordered = [*mechanics_source.coordinates(mechanics), *speeds.all, *speeds.auxiliary]
    found: set[sm.Expr] = set()
    for use in collect_mechanics_expressions(mechanics):
        contents = collect_expression_symbols(use.expression)
        found |= contents.constants | contents.functions_of_time
    functions = [symbol for symbol in ordered if isinstance(symbol, AppliedUndef)]
    return list(dict.fromkeys([*functions, *sorted(found - set(functions), key=_sort_key)]))


def _sort_key(symbol: sm.Expr) -> tuple[str, str]:
    return format_symbol_as_word(symbol), sm.srepr(symbol)


def _folder_of_caller() -> Path:
    """Return the folder of the model file that calls."""
    frame = sys._getframe(2)  # noqa: SLF001 - there is no cheaper public way
    return Path(frame.f_code.co_filename).resolve().parent
