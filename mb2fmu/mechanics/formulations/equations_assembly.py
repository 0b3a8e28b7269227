"""Parts that all formulations share: outputs, energies, body motions, and the assembly of the equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import (
    BodyMotion,
    EquationsOfMotion,
    Intermediate,
    LinearSystemAssignment,
    MassMatrixDynamics,
    Method,
    OutputExpression,
    SymbolStartKind,
)
from mb2fmu.mechanics.equations.link_recursion import ArticulatedBodyStructure, LinkRecursion
from mb2fmu.mechanics.formulations.energies.energy_and_power import form_energy_balance
from mb2fmu.mechanics.formulations.outputs.output_expressions import form_output_expressions
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism, PathwayLoad
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.scales.characteristic_units import DEFAULT_ATTRACTOR_RATE


def assemble_equations(
    method: Method,
    kinematics: SymbolicKinematics,
    dynamics: MassMatrixDynamics | ArticulatedBodyStructure | None,
    *,
    recursion: LinkRecursion | None = None,
    constraint_forces: LinearSystemAssignment | None = None,
    extra: Sequence[Intermediate] = (),
) -> EquationsOfMotion:
    """Assemble the equations of motion.

    Args:
        method: Which formulation.
        kinematics: Its assignments, those made so far and those that the outputs need, become the intermediates.
        dynamics: M u' = f, or what gives u' without M; None: nothing.
        recursion: Local relations; they get the quantities that the kinematics have named.
        constraint_forces: Unknown forces.
        extra: Intermediates of the formulation's own, after those of the kinematics it has used.
    """
    m = kinematics.mechanism
    before = len(kinematics.assignments)
    _name_pathways(kinematics)
    outputs = form_output_expressions(kinematics)
    energy = form_energy_balance(kinematics)
    bodies = _record_body_motions(kinematics)
    assignments: list[Intermediate] = [*kinematics.assignments[:before], *extra, *kinematics.assignments[before:]]
    return EquationsOfMotion(
        method=method,
        t=m.t,
        q=m.q,
        u=m.u,
        u_independent=tuple(range(len(m.u))) if m.holonomic else m.u_independent,
        u_dot=m.u_dot,
        z=m.z,
        p=m.p,
        calculated_parameters=m.calculated_parameters,
        r=m.r,
        intermediates=tuple(assignments),
        kinematics=m.kinematics,
        z_dot=m.z_dot,
        holonomic=m.holonomic,
        velocity_constraints=m.velocity_constraints,
        kinematic_invariants=m.kinematic_invariants,
        treatment="attractor" if m.holonomic else None,
        attractor_rate=(m.stabilization_rate or sm.Integer(DEFAULT_ATTRACTOR_RATE)) if m.holonomic else None,
        start=_start_values(m),
        quaternions=m.quaternions,
        dynamics=dynamics,
        late_intermediates=tuple(kinematics.late_assignments),
        multipliers=m.multipliers if _needs_multipliers(kinematics, outputs, constraint_forces) else (),
        recursion=recursion and replace(recursion, quantities=tuple(kinematics.quantities)),
        constraint_forces=constraint_forces,
        bodies=bodies,
        energy=energy,
        outputs=outputs,
        events=m.events,
        contacts=m.contacts,
        latches=m.latches,
    )


def form_constraint_force_system(m: Mechanism, rows: sm.MatrixBase) -> LinearSystemAssignment:
    """Return the unknown constraint forces as the solution of the auxiliary speeds' equations, linear in them.

    A speed along which no force is declared has an equation that says nothing of the others; it is left out.

    Args:
        m: With constraint forces.
        rows: What has to be zero, one row for each auxiliary speed.

    Raises:
        FormulationError: If these are not as many equations as forces.
    """
    forces = list(m.constraint_forces)
    kept = sm.Matrix([row for row in rows if row.has(*forces)])
    if kept.rows != len(forces):
        names = ", ".join(map(str, forces))
        problem = f"equations of auxiliary speeds that contain them: {kept.rows}; constraint forces: {names}"
        remedy = "apply each force along one auxiliary speed of its own"
        raise FormulationError("the constraint forces are not determined:", [Fault(problem, remedy=remedy)])
    matrix, rest = kept.jacobian(forces), kept.xreplace(dict.fromkeys(forces, sm.S.Zero))
    return LinearSystemAssignment(
        m.constraint_forces, sm.ImmutableMatrix(matrix), sm.ImmutableMatrix(-rest), "constraint forces"
    )


def _start_values(m: Mechanism) -> tuple[SymbolStartKind, ...]:
    """Return each coordinate and speed with its kind of start value: fixed or guess."""
    kinds = [*(c.kind for c in m.declared.coordinates), *(s.kind for s in m.declared.speeds)]
    return tuple(SymbolStartKind(symbol, kind) for symbol, kind in zip((*m.q, *m.u), kinds, strict=True))


def _needs_multipliers(
    kinematics: SymbolicKinematics,
    outputs: Sequence[OutputExpression],
    constraint_forces: LinearSystemAssignment | None,
) -> bool:
    """Return whether an output, or an expression that is named late, needs constraint forces."""
    expressions = [*(o.expression for o in outputs), *(a.expression for a in kinematics.late_assignments)]
    multipliers = set(kinematics.mechanism.multipliers)
    force_symbols = constraint_forces.right_hand_side.free_symbols if constraint_forces else set()
    return bool(force_symbols & multipliers) or any(e.free_symbols & multipliers for e in expressions)


def _name_pathways(kinematics: SymbolicKinematics) -> None:
    """Name lengths and rates of pathways that derivatives of auxiliary states contain."""
    symbols = (
        set().union(*(e.free_symbols for e in kinematics.mechanism.z_dot)) if kinematics.mechanism.z_dot else set()
    )
    for load in kinematics.mechanism.loads:
        if isinstance(load, PathwayLoad) and {load.length, load.rate} & symbols:
            kinematics.assign_pathway(load)


def _record_body_motions(kinematics: SymbolicKinematics) -> tuple[BodyMotion, ...]:
    """Record where each body is, how it is turned, and its velocities."""
    m: Mechanism = kinematics.mechanism
    motions = []
    for body in m.bodies:
        rigid = body.frame >= 0
        motions.append(
            BodyMotion(
                body.name,
                kinematics.position(body.masscenter) if m.points[body.masscenter].located else None,
                kinematics.rotation(body.frame) if rigid else None,
                kinematics.velocity(body.masscenter),
                kinematics.omega(body.frame) if rigid else None,
            )
        )
    return tuple(motions)
