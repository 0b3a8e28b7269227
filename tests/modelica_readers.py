"""Modelica as others read it: pymoca's residuals at states of one's choice, rumoca's simulation."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pymoca.parser
import scipy.sparse as sp
from pymoca.backends.casadi import generator
from scipy.sparse.linalg import splu

from mb2fmu.compiler import evaluation
from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram
from mb2fmu.model.scalar_operation_table import Op
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import start_values
from mb2fmu.pipeline.fmu_build.target_source_export import TARGET_PRINTERS, form_native_fmi3_interface
from mb2fmu.targets.modelica.modelica_file import make_modelica_identifiers
from mb2fmu.targets.modelica.modelica_printing import ModelicaEquationPrinter, ModelicaVariableNames

Floats = npt.NDArray[np.float64]

_BLOCK = int(Op.BLOCK)

# pymoca's backend knows / by the name that it had in Python 2.
generator.OP_MAP["/"] = "__truediv__"


def source_of(derivation: DerivationResult) -> str:
    """The file."""
    return TARGET_PRINTERS["modelica"](derivation)[f"{derivation.definition.name}.mo"].decode()


def pymoca_error(derivation: DerivationResult, source: str, seed: int, spread: float = 0.1) -> float:
    """Error of x' at a random state, of the largest x': a Newton step of pymoca's equations from our own values.

    Args:
        derivation: Of the model.
        source: The file; ``noEvent``, which pymoca does not know, changes no value and is left away.
        seed: Of the state, start values + ``spread`` * normal numbers; likewise of time and inputs.
        spread: See ``seed``.
    """
    program, name = derivation.program, derivation.definition.name
    read = pymoca.parser.parse(source.replace("noEvent(", "("))
    model = generator.generate(read, name)
    random = np.random.default_rng(seed)
    x0, r0, p = start_values(derivation)
    t, x, r = random.uniform(), x0 + spread * random.normal(size=len(x0)), r0 + spread * random.normal(size=len(r0))
    values = _unknowns(derivation, t, x, r, p)
    names = [symbol.symbol.name() for symbol in model.alg_states]
    algebraic = np.array([values[each] for each in names])
    rate = np.asarray(evaluation.make_evaluator(program, "rhs")(t, x, r, p))
    f = model.dae_residual_function
    residual = np.array(f(t, x, rate, algebraic, r, [], p)).ravel()
    size = len(x) + len(algebraic)
    assert len(residual) == size
    full = f.factory("j", [f.name_in(k) for k in range(7)], [f"jac:{f.name_out(0)}:{f.name_in(k)}" for k in (2, 3)])
    parts = full(t, x, rate, algebraic, r, [], p)
    matrix = sp.hstack([sp.csc_matrix(np.array(part)) for part in parts]).tocsc()
    step = splu(matrix).solve(residual)[: len(x)]
    return float(np.max(np.abs(step)) / max(1.0, float(np.max(np.abs(rate)))))


def _unknowns(derivation: DerivationResult, t: float, x: Floats, r: Floats, p: Floats) -> dict[str, float]:
    """Our own values of what the file calls unknowns, and of its outputs."""
    program, interface = derivation.program, form_native_fmi3_interface(derivation)
    groups = [
        [v.name for v in sorted(interface.variables_from_sources(s), key=lambda v: v.index)]
        for s in ("state", "input", "parameter")
    ]
    outputs = [each.name for each in derivation.equations.outputs]
    shown = make_modelica_identifiers([name for group in (*groups, outputs) for name in group])
    ends = np.cumsum([len(group) for group in groups])
    states, inputs, parameters, _ = (list(each) for each in np.split(np.array(shown, dtype=object), ends))
    printer = ModelicaEquationPrinter(program, ModelicaVariableNames(states, inputs, parameters))
    events = [name for name in ("conditions", "resets") if name in program.entries]
    printer.print_entries(("rhs", "outputs", *events))
    values = _values(printer, program, t, x, r, p)
    found = evaluation.make_evaluator(program, "outputs")(t, x, r, p) if outputs else ()
    return values | dict(zip(shown[ends[-1] :], np.asarray(found).ravel().tolist(), strict=True))


def _values(
    printer: ModelicaEquationPrinter, program: ScalarProgram, t: float, x: Floats, r: Floats, p: Floats
) -> dict[str, float]:
    """Of a printer's unknowns, results of systems and the bodies of nonlinear ones with them."""
    of_blocks = {
        f"{printer.prefix}b{int(program.a[n])}_{int(program.b[n]) + 1}": int(n)
        for n in np.flatnonzero(program.op == _BLOCK)
    }
    of_bodies = {k: program.blocks[k].operands[: -program.blocks[k].size] for k in printer.bodies}
    named = {**of_blocks, **printer.nodes}
    wanted = [*named.values(), *(node for operands in of_bodies.values() for node in operands)]
    whole = replace(
        program, entries={**program.entries, "all": ProgramEntryPoint("all", tuple(map(str, wanted)), tuple(wanted))}
    )
    found = np.asarray(evaluation.make_evaluator(whole, "all")(t, x, r, p)).tolist()
    values = dict(zip(named, found, strict=False))
    rest = iter(found[len(named) :])
    for index, operands in of_bodies.items():
        theta = np.array([next(rest) for _ in operands])
        y = np.array([values[f"{printer.prefix}b{index}_{k + 1}"] for k in range(program.blocks[index].size)])
        body = program.bodies[program.blocks[index].body]
        values |= _values(printer.bodies[index], body, t, y, np.zeros(0), theta)
    return values


def states_in(source: str) -> list[str]:
    """Names of the states as they are declared."""
    return re.findall(r"^  Real (\w+)\(.*fixed = true", source, flags=re.MULTILINE)
