"""What an FMU declares, against what it does; prints what disagrees. Arguments: FMU, file with points of the motion.

In Model Exchange, at random points up to a reach (SI) away from the motion, parameters a third of it, relative:
each unknown's derivative by each known, as the FMU gives it and by central
differences; on which knowns it depends, and in which way, against the declared dependencies; adjoint derivatives
against directional ones. What cancels leaves its round-off in a derivative; a dependence that is declared and never
seen is mentioned, no more.
"""

import json
import sys
from pathlib import Path

import numpy as np
from native import Unit

SEED = 4711

unit = Unit(sys.argv[1])
about = json.loads(Path(sys.argv[2]).read_text())
reach = about["reach"]
rng = np.random.default_rng(SEED)
objections = []
superfluous = []

inputs = unit.named(causality="input")
parameters = unit.named(causality="parameter", variability="tunable")
fixed = [name for name in unit.named(causality="parameter", variability="fixed") if name != "solver_step"]
outputs = [unknown.variable.name for unknown in unit.description.outputs]
derivatives = [variable.name for variable in unit.derivatives]
unknowns = [name for name in outputs if name not in unit.states] + derivatives
knowns = [*unit.states, *inputs, *parameters]


def starts(names):
    return {name: float(unit.variables[name].start) for name in names}


def random_point(number):
    """Near a point of the motion, never at it: nothing vanishes by chance."""
    number %= len(about["points"])
    values = {}
    for name, start in (starts([*knowns, *fixed]) | about["points"][number]).items():
        variable = unit.variables[name]
        moved = start + (reach / 3 * abs(start) if name in (*parameters, *fixed) else reach) * rng.uniform(0.2, 1.0)
        low = -np.inf if variable.min is None else float(variable.min)
        high = np.inf if variable.max is None else float(variable.max)
        values[name] = moved if low <= moved <= high else start
    return values, about["times"][number] + rng.uniform(0.1, 2.0)


def placed(point, time):
    """An FMU in continuous-time mode at that point."""
    instance = unit.instance("ME")
    instance.set(**{name: point[name] for name in fixed})
    instance.initialize(**{name: point[name] for name in parameters})
    instance.continuous()
    x = (np.ctypeslib.ctypes.c_double * len(unit.states))(*(point[name] for name in unit.states))
    instance.fmu.setTime(time)
    instance.set(**{name: point[name] for name in inputs})
    instance.fmu.setContinuousStates(x, len(x))
    return instance


def results(point, time):
    instance = placed(point, time)
    values = np.array(instance.get(unknowns))
    instance.close()
    return values


def noise(point, time):
    """Of each result: how far it jumps where the knowns move by their own round-off."""
    samples = []
    for _ in range(8):
        moved = {name: value * (1 + 4 * np.finfo(float).eps * rng.normal()) for name, value in point.items()}
        samples.append(results(moved, time))
    return np.ptp(samples, axis=0)


def differences(point, time, name, jumps):
    """Central differences with two steps, extrapolated; and how far they can be trusted.

    A difference divides round-off (``jumps``) by its step.
    """
    scale = max(abs(point[name]) if name in point else time, 0.1)
    if name in parameters and point[name]:
        scale = abs(point[name])  # a small inertia stays an inertia
    slopes = []
    for h in (2e-4 * scale, 1e-4 * scale):
        ends = []
        for sign in (1, -1):
            moved = dict(point)
            when = time
            if name == "time":
                when += sign * h
            else:
                moved[name] += sign * h
            ends.append(results(moved, when))
        slopes.append((ends[0] - ends[1]) / (2 * h))
    coarse, fine = slopes
    return (4 * fine - coarse) / 3, np.abs(fine - coarse) + 1e-6 * np.max(np.abs(fine)) + 1e-9 + 3 * jumps / h


def seen(entries, known, row):
    """Whether some of a derivative, one per point, is more than what the round-off of the others leaves."""
    sizes, column = np.array([abs(start) or 1.0 for start in starts(knowns).values()]), knowns.index(known)
    of_row = [np.max(np.abs(jacobian[row]) * sizes) / sizes[column] for jacobian in jacobians]
    of_column = [np.max(np.abs(jacobian[:, column])) for jacobian in jacobians]
    return bool(np.any(np.abs(entries) > 1e-12 * np.maximum(of_row, 1e-3 * np.maximum(of_column, 1.0))))


jacobians = []
for number in range(len(about["points"])):
    point, time = random_point(number)
    instance = placed(point, time)
    exact = np.column_stack([instance.forward(unknowns, [name], [1.0]) for name in knowns])
    jacobians.append(exact)
    if number in (1, len(about["points"]) - 1):
        jumps = noise(point, time)
        for column, name in enumerate(knowns):
            found, trust = differences(point, time, name, jumps)
            objections += [
                f"d {unknowns[row]} / d {name} is {exact[row, column]!r}, differences say {found[row]!r}"
                for row in np.flatnonzero(np.abs(found - exact[:, column]) > trust)
            ]
    seeds = rng.normal(size=len(knowns))
    forward = np.array(instance.forward(unknowns, knowns, seeds))
    scale = np.abs(exact) @ np.abs(seeds)
    if np.any(np.abs(forward - exact @ seeds) > 1e-11 * (scale + 1e-3 * np.max(scale))):
        objections.append("directional derivatives do not add up")
    if unit.version == "3":
        weights = rng.normal(size=len(unknowns))
        backward = np.array(instance.backward(unknowns, knowns, weights))
        scale = np.abs(weights) @ np.abs(exact)
        worst = np.max(np.abs(backward - weights @ exact) / (scale + 1e-3 * np.max(scale)))
        if worst > 1e-11:
            objections.append(f"adjoint derivatives disagree with directional ones by {worst:.1e}")
    instance.close()

# Declared dependencies. FMI 2 declares those on states, inputs and time; FMI 3 on parameters too.
declared_knowns = [*unit.states, *inputs, *(parameters if unit.version == "3" else [])]
by_time = []
for number in range(3):
    point, time = random_point(2 * number)
    by_time.append(differences(point, time, "time", noise(point, time)))
lists = [*unit.description.outputs, *unit.description.derivatives]
for unknown in lists:
    name = unknown.variable.name
    if name in unit.states:
        continue
    if unknown.dependencies is None:
        objections.append(f"{name} declares no dependencies")
        continue
    said = unknown.dependenciesKind or ["dependent"] * len(unknown.dependencies)  # what no kinds mean
    kinds = dict(zip((v.name for v in unknown.dependencies), said, strict=True))
    row = unknowns.index(name)
    for known in declared_knowns:
        entries = np.array([jacobian[row, knowns.index(known)] for jacobian in jacobians])
        kind = kinds.pop(known, None)
        if kind is None and seen(entries, known, row):
            objections.append(f"{name} depends on {known}, which is not declared: {entries}")
        elif kind is not None and not np.any(entries):
            superfluous.append(f"{name} on {known}")
        elif kind == "constant" and np.ptp(entries) > 1e-13 * np.max(np.abs(entries)):
            objections.append(
                f"{name} is declared to depend on {known} with a constant factor, which changes: {entries}"
            )
    slopes = np.array([abs(slope[row]) > trust[row] for slope, trust in by_time])
    if slopes.any() and "time" not in kinds:
        objections.append(f"{name} depends on time, which is not declared")
    kinds.pop("time", None)
    if unit.version == "3":
        kinds = {known: kind for known, kind in kinds.items() if known not in fixed}
    if kinds:
        objections.append(f"{name} is declared to depend on {sorted(kinds)}")

# Kinds fixed and tunable: the factor changes with parameters only.
point, time = random_point(0)
factors = []
for number in range(3):
    other, when = random_point(2 * number)
    instance = placed(point | {name: other[name] for name in (*unit.states, *inputs)}, when)
    factors.append(np.column_stack([instance.forward(unknowns, [name], [1.0]) for name in knowns]))
    instance.close()
for unknown in lists:
    for variable, kind in zip(unknown.dependencies or [], unknown.dependenciesKind or [], strict=False):  # or no kinds
        if unknown.variable.name in unknowns and variable.name in knowns and kind in {"fixed", "tunable"}:
            place = unknowns.index(unknown.variable.name), knowns.index(variable.name)
            entries = np.array([factor[place] for factor in factors])
            if np.ptp(entries) > 1e-13 * np.max(np.abs(entries)):
                objections.append(f"{unknown.variable.name} by {variable.name}: {kind}, but {entries}")

# The state vector is what the description says it is.
point, time = random_point(1)
instance = placed(point, time)
x = (np.ctypeslib.ctypes.c_double * len(unit.states))()
instance.fmu.getContinuousStates(x, len(x))
if instance.get(unit.states) != list(x):
    objections.append("the state vector is not in the order of the derivatives")
dx = (np.ctypeslib.ctypes.c_double * len(unit.states))()
(instance.fmu.getContinuousStateDerivatives if instance.new else instance.fmu.getDerivatives)(dx, len(dx))
if instance.get(derivatives) != list(dx):
    objections.append("the vector of derivatives is not in the order of the description")
for number, name in enumerate(unit.states):
    x[number] += 0.25
    instance.fmu.setContinuousStates(x, len(x))
    if instance.get([name]) != [x[number]]:
        objections.append(f"state {number} is not {name}")
instance.close()

# Start values are what the FMU has, in bounds; approximate ones are solved for, to round-off where a model was closed.
# A state that events may set can have been set by the first.
instance = unit.instance("CS").initialize()
settable = unit.states if unit.description.numberOfEventIndicators else []
for name, variable in unit.variables.items():
    if variable.start is not None and variable.type in {"Real", "Float64"} and name not in settable:
        value = float(variable.start)
        off = abs(instance.get([name])[0] - value)
        if not off <= (1e-12 * max(1.0, abs(value)) if variable.initial == "approx" else 0.0):
            objections.append(f"{name} starts at {instance.get([name])}, declared {value!r}")
        low, high = (None if bound is None else float(bound) for bound in (variable.min, variable.max))
        if (low is not None and value < low) or (high is not None and value > high):
            objections.append(f"the start value of {name} is out of its bounds")
if superfluous:
    sys.stdout.write(f"declared, but cancelled: {'; '.join(superfluous)}\n")
sys.stdout.write("\n".join(dict.fromkeys(objections)) + ("\n" if objections else "") + "ok\n")
