"""The process in which a script runs: ``python -m mb2fmu.pipeline.adoption.script_adoption_process``.

It writes what it found as JSON, an ``AdoptedModelFile``, or what went wrong.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
import time
import traceback
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import sympy as sm
from sympy.physics.mechanics import Particle, Point, RigidBody

from mb2fmu.errors import Fault, Mb2FmuError, ModelError
from mb2fmu.mechanics.formulations.energies.energy_and_power import potential_energy
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism, solve_loop_closure_start_values
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model import check_model
from mb2fmu.model.model import Model
from mb2fmu.model.script_import.mechanics_from_script import ScriptMechanics, read_script
from mb2fmu.model.script_import.observed_script_run import ScriptRun, has_known_mechanics, run_script
from mb2fmu.model.script_import.script_code_preparation import read_script_parts
from mb2fmu.model.script_import.script_mechanics_makers import list_script_mechanics_makers
from mb2fmu.model.sources import mechanics_source
from mb2fmu.pipeline.adoption.adopted_script_result import MODEL_FILE, AdoptedModelFile
from mb2fmu.pipeline.adoption.model_file_text import IMPORT_LINE, format_model_file
from mb2fmu.pipeline.adoption.script_slice import inline_model_file, slice_script_for_mechanics
from mb2fmu.pipeline.adoption.symbol_classification import (
    AdoptedModelContent,
    AdoptedQuantity,
    classify_mechanics_symbols,
    list_script_symbols_without_value,
)

_CHECK_LIMIT_S = 40.0
"""What the check of the written model may take, in s; then the model file has no outputs."""
_INTERRUPT_ALLOWANCE_S = 2.0
_REPEATED_INTERRUPT_S = 1.0
"""How long after its time limit a script may go on until its process is ended, in s."""


def adopt_script(
    script: Path, reference: str, name: str, label: str | None, limit: float, *, inline: bool = False,
    trace: TextIO | None = None,
) -> AdoptedModelFile:  # fmt: skip
    """Run a script, and print the model file for one object of its mechanics.

    Args:
        script: Its path.
        reference: Its path as the model file is to find it.
        name: FMU model name.
        label: Which object; None: the last one whose equations the script requested.
        limit: Time limit of the script, in s.
        inline: Whether the script's lines stand in the model file.
        trace: Takes the running line of a script that no interrupt ends; this process ends then. None: it goes on.

    Raises:
        ModelError: If the script makes no mechanics, or not the wanted ones.
    """
    begun = time.monotonic()
    adopted, run = _adopt_one(script, name, label, _end_after(limit, trace), defer=True)
    left = limit - (time.monotonic() - begun)
    is_doubtful = run.error is not None or _may_start_elsewhere(run)
    if (adopted.missing or is_doubtful) and left > 1.0:
        # Values may come from the equations themselves: the script runs again, with all that SymPy forms.
        with suppress(Mb2FmuError):
            again, rerun = _adopt_one(script, name, label or adopted.label, _interrupt_after(left), defer=False)
            if len(again.missing) < len(adopted.missing) or (rerun.error is None and is_doubtful):
                adopted, run = again, rerun
    record = _record(adopted, run, reference)
    return _inlined(record, script) if inline else record


def _inlined(record: AdoptedModelFile, script: Path) -> AdoptedModelFile:
    """Return the record with a model file that needs no script."""
    run = run_script(script, until=record.label)
    if run.ended is None:
        fault = Fault(f"{record.label} is never completed", script.name, "leave out --inline")
        raise ModelError("the script cannot be written into one file:", [fault])
    part = slice_script_for_mechanics(read_script_parts(run.path), run.ended, run.namespaces[-1], record.label)
    made = ScriptMechanics(run.mechanics[record.label])
    return replace(record, text=inline_model_file(record.text, part, made, record.label))


def _adopt_one(
    script: Path, name: str, label: str | None, guard: AbstractContextManager[None], *, defer: bool
) -> tuple[AdoptedModelContent, ScriptRun]:
    """Run a script once, and decide what its mechanics' symbols are."""
    run = run_script(script, defer=defer, guard=guard)
    chosen = _choose(run, label)
    # As the model file finds them: a script may go on to other loads, which the file does not see.
    return classify_mechanics_symbols(run, chosen, read_script(run.path, chosen).mechanics, name), run


@contextmanager
def _end_after(limit: float, trace: TextIO | None) -> Iterator[None]:
    """Interrupt what runs after the limit; end the process where that does not help, with the line in ``trace``."""
    if trace is not None:
        faulthandler.dump_traceback_later(limit + _INTERRUPT_ALLOWANCE_S, exit=True, file=trace)
    try:
        with _interrupt_after(limit):
            yield
    finally:
        if trace is not None:
            faulthandler.cancel_dump_traceback_later()


@contextmanager
def _interrupt_after(limit: float) -> Iterator[None]:
    """Interrupt what runs after the limit, as Ctrl-C would, again and again: the script may catch all exceptions."""
    ended = threading.Event()

    def interrupt() -> None:
        """Interrupt the main thread until the guarded code has ended."""
        wait = limit
        while not ended.wait(wait):
            interrupt_main()
            wait = _REPEATED_INTERRUPT_S

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.signal(signal.SIGINT, handler)


def _choose(run: ScriptRun, label: str | None) -> str:
    """Return the label of the wanted object."""
    if label is not None:
        if label not in run.mechanics:
            fault = Fault(f"no {label} is made in it", run.path.name, f"it makes {', '.join(run.mechanics) or 'none'}")
            raise ModelError("the mechanics cannot be adopted:", [fault] + ([run.error] if run.error else []))
        return label
    if run.complete:
        return run.complete[-1]
    usable = [name for name, made in run.mechanics.items() if has_known_mechanics(made)]
    if usable:
        return usable[-1]
    what, remedy = _explain_missing_mechanics(run)
    raise ModelError(f"no mechanics are found in {run.path.name}:", [run.error or Fault(what, run.path.name, remedy)])


def _explain_missing_mechanics(run: ScriptRun) -> tuple[str, str]:
    """Return why a script has no mechanics that are complete, and what to do."""
    what = "it makes no KanesMethod, LagrangesMethod, JointsMethod or System"
    remedy = (
        "mb2fmu reads mechanics, not equations: give a Lagrangian L written by hand to LagrangesMethod(L, [q]), "
        "or bodies and loads to KanesMethod or mb2fmu.Parts"
    )
    if run.mechanics:
        return f"{', '.join(run.mechanics)} has no bodies: kanes_equations was not called", remedy
    makers = [maker.name for maker in list_script_mechanics_makers(read_script_parts(run.path))]
    if makers:
        names = ", ".join(makers)
        return f"{what} when it is run", f"{names} would, and nothing calls it: call it at the script's end"
    bodies, points = _name_variables(run, Particle | RigidBody), _name_variables(run, Point)
    line = "add a line at its end:  kane = KanesMethod(frame, q, u, kd_eqs=…, bodies=…, forcelist=…)"
    if bodies:
        return f"{what}: its bodies ({', '.join(bodies)}) are handed to nothing", line
    if points:
        what += f", and no body: it writes equations by hand for points {', '.join(points)}"
        return what, f"make a Particle or RigidBody of each mass, and {line}"
    return what, remedy


def _name_variables(run: ScriptRun, kind: Any) -> list[str]:
    """Return the names of a script's variables of a kind."""
    return list(
        dict.fromkeys(name for each in run.namespaces for name, value in each.items() if isinstance(value, kind))
    )


def _record(adopted: AdoptedModelContent, run: ScriptRun, reference: str) -> AdoptedModelFile:
    """Print the model file, with the outputs that the mechanism has."""
    adopted, check = _choose_outputs(adopted, run, reference)
    others = [label for label in run.mechanics if label != adopted.label]
    return AdoptedModelFile(
        text=format_model_file(adopted, reference, energy=check.energy, placed=check.placed),
        name=adopted.name,
        label=adopted.label,
        kind=mechanics_source.describe_mechanics_kind(run.mechanics.get(adopted.label, adopted.mechanics)),
        others=tuple(others),
        missing=tuple(list_script_symbols_without_value(adopted)),
        no_start=tuple(_name(each) for each in adopted.quantities if each.is_assumed and each.kind != "input"),
        inputs=tuple(_name(each) for each in adopted.quantities if each.kind == "input"),
        no_signal=tuple(
            f"{_name(each)} ({each.value:g} assumed{each.doubt and f'; {each.doubt}'})"
            for each in adopted.quantities
            if each.is_assumed and each.kind == "input"
        ),
        contradictions=adopted.units.contradictions,
        integrator=run.integration.integrator,
        error="" if run.error is None else str(run.error),
        notes=(*check.notes, *filter(None, [run.called])),
        faults=(*check.faults, *_further_states(adopted), *_changing_parameters(adopted), *_doubtful_values(run)),
        counts={
            kind: sum(each.kind == kind for each in adopted.quantities)
            for kind in ("parameter", "input", "coordinate", "speed")
        },
    )


def _name(quantity: AdoptedQuantity) -> str:
    """Return the name of a quantity for people: ``theta``, ``theta'``."""
    symbol = quantity.symbol
    return f"{symbol.expr.func}'" if isinstance(symbol, sm.Derivative) else str(symbol).replace("(t)", "")


@dataclass(frozen=True, slots=True)
class _AdoptedModelFindings:
    """What the import of an adopted model says.

    Attributes:
        energy: Which energy is known, ``total`` or ``kinetic``; None: neither.
        placed: Bodies whose mass centres have positions.
        faults: What speaks against the model.
        notes: What was accepted.
    """

    energy: str | None = None
    placed: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _choose_outputs(
    adopted: AdoptedModelContent, run: ScriptRun, reference: str
) -> tuple[AdoptedModelContent, _AdoptedModelFindings]:
    """Return the model, and what its import says; nothing where that takes too long."""
    # As the model file finds them: a script that goes on writes velocities into its points, which it has not there.
    script = read_script(run.path, adopted.label)
    try:
        with _interrupt_after(_CHECK_LIMIT_S):
            return _choose_start(adopted, script, reference)
    except KeyboardInterrupt:  # large mechanisms take longer to import than a file should take to be written
        return adopted, _AdoptedModelFindings()


def _choose_start(
    adopted: AdoptedModelContent, script: ScriptMechanics, reference: str
) -> tuple[AdoptedModelContent, _AdoptedModelFindings]:
    """Return the model with a start at which it can be assembled, and what its import says."""
    check = _check_import(adopted, script, reference)
    if check.faults and any(_is_movable(each) for each in adopted.quantities):
        # Where nothing says the start, one is taken at which the constraints can be solved.
        shifted = tuple(replace(q, value=0.1) if _is_movable(q) else q for q in adopted.quantities)
        moved = replace(adopted, quantities=shifted)
        moved_check = _check_import(moved, script, reference)
        if not moved_check.faults:
            return moved, moved_check
    return adopted, check


def _further_states(adopted: AdoptedModelContent) -> Iterator[str]:
    """Yield what is to be mended where the script integrates more than coordinates and speeds."""
    for each in adopted.quantities:
        if each.is_integrated:
            yield f"{each.symbol} is integrated by the script itself: declare it by model.state, with its derivative"


def _changing_parameters(adopted: AdoptedModelContent) -> Iterator[str]:
    """Yield what is to be mended where a parameter has other values at other instants of the script's integration."""
    for each in adopted.quantities:
        if each.kind == "parameter" and each.doubt:
            note = f"{each.symbol} is a parameter of {each.value:g}, but in the script {each.doubt}"
            yield f"{note}: make it one of dynamicsymbols there"


def _may_start_elsewhere(run: ScriptRun) -> bool:
    """Return whether an integrator's start may follow from stand-ins; the script's own loop always evaluates them."""
    return run.values.stand_in_evaluated and bool(run.integration.integrator)


def _doubtful_values(run: ScriptRun) -> Iterator[str]:
    """Yield what is to be checked where numbers of the script may come from equations that were not formed."""
    if _may_start_elsewhere(run):
        yield "values may follow from equations of motion that were not formed: check them, or give it more by --time"


def _is_movable(quantity: AdoptedQuantity) -> bool:
    """Return whether a coordinate may start elsewhere: the script says no start."""
    return quantity.kind == "coordinate" and quantity.is_assumed


def _check_import(adopted: AdoptedModelContent, script: ScriptMechanics, reference: str) -> _AdoptedModelFindings:
    """Return whether the energy is known, which bodies have a known position, and the faults of the model so far."""
    filled = tuple(replace(each, value=1.0) if each.value is None else each for each in adopted.quantities)
    complete = replace(adopted, quantities=filled)
    try:
        mechanism = solve_loop_closure_start_values(
            read_mechanism(check_model(_make_model(complete, script, reference)))
        )
    except Mb2FmuError as error:
        return _AdoptedModelFindings(faults=tuple(str(fault) for fault in error.faults))
    except Exception as error:  # noqa: BLE001 - a fault of the check must not keep the file from being written
        # Where values are missing it may come of the numbers that were put in their places.
        return _AdoptedModelFindings(faults=() if adopted.missing else (f"{type(error).__name__}: {error}",))
    try:
        known = potential_energy(SymbolicKinematics(mechanism)) is not None
    except Mb2FmuError:
        known = False
    placed = tuple(_list_placed_bodies(mechanism))
    return _AdoptedModelFindings("total" if known else "kinetic", placed, (), mechanism.import_notes)


def _list_placed_bodies(mechanism: Mechanism) -> Iterator[str]:
    """Yield the names of the bodies whose mass centres have positions, not velocities only."""
    unlocated = any(point.parent == 0 and not point.located for point in mechanism.points)
    for body in mechanism.bodies:
        if mechanism.points[body.masscenter].located and not (body.masscenter == 0 and unlocated):
            yield body.name


def _make_model(adopted: AdoptedModelContent, script: ScriptMechanics, reference: str) -> Model:
    """Run the text of the model file on the script's mechanics."""
    text = format_model_file(adopted, reference, energy=None, placed=())
    variables: dict[str, Any] = {"read_script": lambda *_: script, "Model": Model}
    exec(compile(text.replace(IMPORT_LINE, ""), MODEL_FILE, "exec"), variables)  # noqa: S102 - our own text
    function = next(value for value in variables.values() if getattr(value, "__annotations__", {}).get("return"))
    made: Model = function()
    return made


def _run_script_adoption_process() -> None:
    """Adopt the script of the command line: script, reference, name, label, limit, "inline" or "", result."""
    script, reference, name, label, limit, inline, place = sys.argv[1:]
    try:
        with Path(f"{place}.trace").open("w", encoding="utf-8") as trace:
            record = adopt_script(
                Path(script), reference, name, label or None, float(limit), inline=inline == "inline", trace=trace
            )
        result: dict[str, Any] = {"record": asdict(record)}
    except Mb2FmuError as error:
        traceback.print_exc()
        result = {"headline": error.headline, "faults": [asdict(fault) for fault in error.faults]}
    Path(place).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    _run_script_adoption_process()
