"""Named quantities of any mechanism: of Kane's method, of TMT, and of Lagrange's equations.

The FMU uses nothing of this: it is formed from the records alone, to be shown and compared with the FMU.

    F_r  = Σ_loads v_r · F + ω_r · T
    F_r* = -Σ_bodies v_r · m a + ω_r · (I α + ω × I ω)                                  F_r + F_r* = 0
    F̃_r  = F_r + Σ_s A_sr F_s, likewise F̃_r*, for u_s = Σ_r A_sr u_r + B_s              F̃_r + F̃_r* = 0
    M_d  = Σ_bodies Tᵀ M T,  f_d = Σ_bodies Tᵀ (f - M ḡ) and Tᵀ f of loads elsewhere    M_d u' = f_d
    p_r  = ∂T/∂q'_r                                                                     p_r' - ∂T/∂q_r = Σ_loads Q_r

Source: Kane and Levinson, Dynamics: Theory and Applications, 1985, ch. 2.14 and 4; Vallery and Schwab, Advanced
Dynamics, 2018, ch. 4; Moore, Learn Multibody Dynamics, "Generalized Forces", "Unconstrained Equations of Motion with
the TMT Method", "Equations of Motion with the Lagrange Method".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import LinearSystemAssignment, SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import (
    QuantityLetter,
    TheoryQuantities,
    TheoryQuantity,
    TheoryQuantitySection,
)
from mb2fmu.mechanics.formulations import lagrange
from mb2fmu.mechanics.formulations.applied_loads import AppliedLoad, list_applied_loads
from mb2fmu.mechanics.formulations.energies.energy_and_power import kinetic_energy, potential_energy
from mb2fmu.mechanics.formulations.energies.first_integrals import FirstIntegralFinder, LagrangeEnergyTerms
from mb2fmu.mechanics.formulations.formulation_applicability import check_projection_applicability
from mb2fmu.mechanics.formulations.intermediate_substitution import substitute_short_intermediates
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, Components, Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    invert_block_matrix,
    total_time_derivative,
)
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    cross_product,
    dot_product,
    multiply_matrix_by_vector,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import Partials, SymbolicKinematics

SECTION_TITLES = {
    "partial-velocities": "Partial velocities and partial angular velocities, in the inertial frame",
    "generalized-active-forces": "Generalized active forces",
    "generalized-inertia-forces": "Generalized inertia forces",
    "transformation": "TMT: transformation, mass matrix, convective acceleration and projected force of each body",
    "lagrange": "Energies and the terms of Lagrange's equations",
    "momenta": "Generalized momenta",
    "integrals": "Integrals of motion",
}
"""Kind → title, in the order in which they are explained."""
_RATE_KINDS = ("lagrange", "momenta", "integrals")
"""Kinds that are written in q' and not in speeds."""


def form_theory_quantities(mechanism: Mechanism, kinds: Sequence[str], *, contracted: bool = True) -> TheoryQuantities:
    """Form the requested quantities.

    Args:
        mechanism: As read.
        kinds: Some of :data:`SECTION_TITLES`.
        contracted: See :func:`mb2fmu.mechanics.formulations.intermediate_substitution.substitute_short_intermediates`.

    Returns:
        A section per kind, and the intermediates that stand in them.

    Raises:
        FormulationError: With every kind that there is not, or that this mechanism does not have.
    """
    theory = _TheorySectionBuilder(mechanism)
    faults, formed_sections = [], []
    for kind in dict.fromkeys(kinds):
        if kind not in SECTION_TITLES:
            faults.append(Fault(f"{kind!r} cannot be shown", remedy=f"take some of {', '.join(SECTION_TITLES)}"))
        elif reason := theory.explain_unavailable(kind):
            faults.append(Fault(f"{kind}: {reason}", remedy=_describe_available_kinds(mechanism)))
        elif not faults and kind not in _RATE_KINDS:
            formed_sections.append(theory.form_section(kind))
    if faults:
        raise FormulationError("some quantities cannot be shown:", faults)
    quantities = substitute_short_intermediates(
        mechanism.declared.name, formed_sections, theory.list_intermediates, theory.rates, contracted=contracted
    )
    rate_kinds = [kind for kind in dict.fromkeys(kinds) if kind in _RATE_KINDS]
    if not rate_kinds:
        return quantities
    rate_theory = _TheorySectionBuilder(
        mechanism, {item.symbol.name for item in quantities.intermediates if isinstance(item, SymbolAssignment)}
    )
    rate_sections = [rate_theory.form_section(kind) for kind in rate_kinds]
    terms = substitute_short_intermediates(
        quantities.name, rate_sections, rate_theory.list_intermediates, rate_theory.rates, contracted=contracted
    )
    sections = {section.kind: section for section in (*quantities.sections, *terms.sections)}
    return TheoryQuantities(
        quantities.name,
        tuple(sections[kind] for kind in dict.fromkeys(kinds)),
        (*quantities.intermediates, *terms.intermediates),
        quantities.rates | terms.rates,
    )


def _describe_available_kinds(m: Mechanism) -> str:
    """Return what can be shown of any mechanism, for a message."""
    return "show lagrange" if m.is_lagrangian_only else "show partial-velocities, generalized-active-forces"


class _TheorySectionBuilder:
    """Forms the sections of one mechanism; common quantities are named once."""

    def __init__(self, mechanism: Mechanism, taken_names: Iterable[str] = ()) -> None:
        self.m = m = mechanism
        self.kinematics = SymbolicKinematics(m, taken_names)
        self.first: list[SymbolAssignment] = []
        self.solves: list[LinearSystemAssignment] = []
        self.rates = {dot: (u, 1) for u, dot in zip(m.u, m.u_dot, strict=True)}
        self._terms: LagrangeEnergyTerms | None = None
        self._motion: dict[sm.Symbol, sm.Expr] = {}
        self._forces: dict[str, dict[int, sm.Expr]] = {}
        self._dependent_jacobian: dict[int, dict[int, sm.Symbol]] | None = None

    @property
    def list_intermediates(self) -> list[SymbolAssignment | LinearSystemAssignment]:
        """All named intermediates, in order of evaluation."""
        return [*self.first, *self.kinematics.assignments, *self.kinematics.late_assignments, *self.solves]

    def explain_unavailable(self, kind: str) -> str:
        """Return the reason why the mechanism has no quantities of this kind; empty if it has some."""
        if kind == "integrals" and self.m.is_lagrangian_only:
            return ""
        answer = (
            lagrange.check_applicability(self.m)
            if kind in ("lagrange", "momenta")
            else check_projection_applicability(self.m)
        )
        return "" if answer.is_applicable else answer.reason

    def form_section(self, kind: str) -> TheoryQuantitySection:
        """Return all quantities of one kind."""
        form: dict[str, Callable[[], Iterator[TheoryQuantity]]] = {
            "partial-velocities": self._list_partial_velocities,
            "generalized-active-forces": self._list_active_forces,
            "generalized-inertia-forces": self._list_inertia_forces,
            "transformation": self._list_transformation_quantities,
            "lagrange": self._list_lagrange_quantities,
            "momenta": self._list_momenta,
            "integrals": self._list_first_integrals,
        }
        note = ""
        if kind in ("generalized-active-forces", "generalized-inertia-forces") and self.form_dependent_speed_jacobian():
            names = ", ".join(str(self.m.u[s]) for s in self.form_dependent_speed_jacobian())
            note = f"F~: of the independent speeds, {names} carried along by the constraints."
        quantities = tuple(form[kind]())
        if kind == "integrals":
            note = "" if quantities else "None was found."
            note += f" Of coordinates none was looked for: {self.explain_unavailable('lagrange')}." * bool(
                self.explain_unavailable("lagrange")
            )
        return TheoryQuantitySection(
            kind, SECTION_TITLES[kind], quantities, f"{note.strip()} {self._describe_event_effects(kind)}".strip()
        )

    def _describe_event_effects(self, kind: str) -> str:
        """Return how events, contacts and latches change quantities of a kind, which is formed without them."""
        has_contacts = bool(self.m.contacts or self.m.latches)
        if kind == "integrals" and self.m.has_event_sources:
            exclusion = ", where nothing touches and no latch holds" if has_contacts else ""
            return f"They keep their values between events{exclusion}."
        if kind in ("generalized-active-forces", "lagrange") and has_contacts:
            return "Forces of contacts and latches are not among them."
        return ""

    # ------------------------------------------------------------------ Kane

    def form_dependent_speed_jacobian(self) -> dict[int, dict[int, sm.Symbol]]:
        """A_sr by dependent and independent speed; empty where there are none, or rows are redundant."""
        if self._dependent_jacobian is None:
            m, c = self.m, self.m.velocity_constraints
            dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
            self._dependent_jacobian = {}
            if c is not None and dependent and len(c.names) == len(dependent):
                independent, rows = list(m.u_independent), list(range(len(dependent)))
                names = [[self.kinematics.make_symbol(f"A_{m.u[s]}_{m.u[r]}") for r in independent] for s in dependent]
                left, right = c.jacobian.extract(rows, dependent), -c.jacobian.extract(rows, independent)
                description = "dependent speeds in terms of the independent ones"
                flat = tuple(name for row in names for name in row)
                self.solves.append(
                    LinearSystemAssignment(flat, sm.ImmutableMatrix(left), sm.ImmutableMatrix(right), description)
                )
                for s, row in zip(dependent, names, strict=True):
                    self._dependent_jacobian[s] = dict(zip(independent, row, strict=True))
        return self._dependent_jacobian

    def _list_partial_velocities(self) -> Iterator[TheoryQuantity]:
        """Yield the partial velocities of all mass centres and of all points and frames that loads act on."""
        m, k = self.m, self.kinematics
        loads = list(list_applied_loads(k))
        points = dict.fromkeys([*(b.masscenter for b in m.bodies), *(a.at for a in loads if not a.torque)])
        frames = dict.fromkeys([*(b.frame for b in m.bodies if _has_inertia(b)), *(a.at for a in loads if a.torque)])
        for point in points:
            yield from self._list_columns("v", m.points[point].name, k.velocity_partials(point))
        for frame in frames:
            if frame > 0:
                yield from self._list_columns("omega", m.frames[frame].name, k.omega_partials(frame))

    def _list_columns(self, letter: QuantityLetter, name: str, partials: Partials) -> Iterator[TheoryQuantity]:
        """Yield each column of partial velocities as a quantity named by its speed."""
        for j, column in partials.items():
            yield TheoryQuantity(letter, name, self.m.u_all[j], _column(column))

    def _list_active_forces(self) -> Iterator[TheoryQuantity]:
        """Yield the generalized active forces, load by load, and those of a Lagrangian's potential."""
        by_load: dict[str, dict[int, sm.Expr]] = {load.name: {} for load in self.m.loads}
        for applied in list_applied_loads(self.kinematics):
            forces_of_load = by_load[self.m.loads[applied.load].name]
            for j, column in applied.partials.items():
                forces_of_load[j] = forces_of_load.get(j, sm.S.Zero) + dot_product(column, applied.vector)
        if self.m.potential_forces:
            by_load["the Lagrangian's potential"] = dict(enumerate(self.m.potential_forces))
        yield from self._list_by_speed("F", by_load)

    def _list_inertia_forces(self) -> Iterator[TheoryQuantity]:
        """Yield the generalized inertia forces, body by body: partial velocities times −m a, and −(I α + ω × I ω)."""
        k = self.kinematics
        by_body: dict[str, dict[int, sm.Expr]] = {}
        for body in self.m.bodies:
            forces_of_body = by_body[body.name] = {}
            force = scale_components(-body.mass, k.acceleration(body.masscenter))
            for j, column in k.velocity_partials(body.masscenter).items():
                forces_of_body[j] = forces_of_body.get(j, sm.S.Zero) + dot_product(column, force)
            if not _has_inertia(body):
                continue
            torque = k.name_components_late(_inertia_torque(body, k), f"Tstar_{body.name}")
            for j, column in k.omega_partials(body.frame).items():
                forces_of_body[j] = forces_of_body.get(j, sm.S.Zero) + dot_product(column, torque)
        yield from self._list_by_speed("F*", by_body)

    def _list_by_speed(
        self, letter: QuantityLetter, parts: Mapping[str, Mapping[int, sm.Expr]]
    ) -> Iterator[TheoryQuantity]:
        """Yield a quantity of every part, of all together, and of the independent speeds alone."""
        total: dict[int, sm.Expr] = dict.fromkeys(range(len(self.m.u_all)), sm.S.Zero)
        for name, forces in parts.items():
            for j, force in sorted(forces.items()):
                if force != 0:
                    yield TheoryQuantity(letter, name, self.m.u_all[j], force)
                total[j] += force
        for j, force in total.items():
            yield TheoryQuantity(letter, "", self.m.u_all[j], force)
        dependent_jacobian = self.form_dependent_speed_jacobian()
        for r in self.m.u_independent if dependent_jacobian else ():
            reduced_force = total[r] + sm.Add(*(row[r] * total[s] for s, row in dependent_jacobian.items()))
            yield TheoryQuantity("F~" if letter == "F" else "F~*", "", self.m.u[r], reduced_force)

    # ------------------------------------------------------------------ TMT

    def _list_transformation_quantities(self) -> Iterator[TheoryQuantity]:
        """Yield T, M, ḡ, f and Tᵀ (f - M ḡ) by body; f has the gyroscopic torque and loads on mass centre and frame."""
        taken_loads: set[int] = set()
        loads = list(list_applied_loads(self.kinematics))
        for body in self.m.bodies:
            yield from self._list_body_quantities(body, loads, taken_loads)
        for number, applied in enumerate(loads):
            if number not in taken_loads and applied.partials:
                name = self.m.loads[applied.load].name
                yield TheoryQuantity("Q", name, None, self._project_on_speeds(applied.partials, applied.vector))
        if self.m.potential_forces:
            value = sm.ImmutableMatrix(self.m.potential_forces)
            yield TheoryQuantity("Q", "the Lagrangian's potential", None, value)

    def _list_body_quantities(
        self, body: Body, loads: Sequence[AppliedLoad], taken_loads: set[int]
    ) -> Iterator[TheoryQuantity]:
        """Yield T, M, g, f and Q* = Tᵀ (f − M g) of one body."""
        k, columns = self.kinematics, range(len(self.m.u))
        has_inertia = _has_inertia(body)
        v, w = k.velocity_partials(body.masscenter), k.omega_partials(body.frame) if has_inertia else {}
        force, torque = ZERO, ZERO
        for number, applied in enumerate(loads):
            acts_on_body = applied.at == (body.frame if applied.torque else body.masscenter)
            if acts_on_body and (has_inertia or not applied.torque):
                taken_loads.add(number)
                force = force if applied.torque else add_vector_components(force, applied.vector)
                torque = add_vector_components(torque, applied.vector) if applied.torque else torque
        rows = [[v.get(j, ZERO)[i] for j in columns] for i in range(3)]
        mass, drift = body.mass * sm.eye(3), list(k.acceleration0(body.masscenter))
        applied_forces = list(force)
        if has_inertia:
            R = k.rotation(body.frame)
            inertia = (R * body.inertia * R.T).applyfunc(lambda e: k.name(e, f"I_{body.name}"))
            omega = k.omega(body.frame)
            gyroscopic = cross_product(
                omega, k.name_components(multiply_matrix_by_vector(inertia, omega), f"H_{body.name}")
            )
            rows += [[w.get(j, ZERO)[i] for j in columns] for i in range(3)]
            mass = sm.diag(mass, inertia)
            drift += k.alpha0(body.frame)
            applied_forces += add_vector_components(torque, scale_components(sm.S.NegativeOne, gyroscopic))
        T, g, f = sm.Matrix(rows), sm.Matrix(drift), sm.Matrix(applied_forces)
        for letter, value in (("T", T), ("M", mass), ("g", g), ("f", f), ("Q*", T.T * (f - mass * g))):
            yield TheoryQuantity(letter, body.name, None, sm.ImmutableMatrix(value))  # type: ignore[arg-type]

    def _project_on_speeds(self, partials: Partials, vector: Components) -> sm.ImmutableMatrix:
        """Return the dot products of a vector with the partial velocities of all speeds, shape (n_u, 1)."""
        return sm.ImmutableMatrix([dot_product(partials.get(j, ZERO), vector) for j in range(len(self.m.u))])

    # ------------------------------------------------------------------ Lagrange

    def get_lagrange_terms(self) -> LagrangeEnergyTerms:
        """Energies, momenta, slopes and forces; formed once."""
        if self._terms is None:
            self._terms = self._form_terms()
        return self._terms

    def _form_terms(self) -> LagrangeEnergyTerms:
        """Form the energies, momenta, slopes and generalized forces of Lagrange's equations."""
        m, k = self.m, self.kinematics
        self._motion, rate_matrix = self._list_coordinate_rates()
        rates = list(self._motion)[: len(m.q)]
        if m.is_lagrangian_only and m.lagrangian is not None:
            energy, potential = m.lagrangian.expression, sm.S.Zero
            self._forces = {"the loads": dict(enumerate(m.lagrangian.forces))}
        else:
            energy, potential = kinetic_energy(k), potential_energy(k)
            self._forces = {}
            for item in self._list_active_forces():
                if item.of and item.letter == "F" and item.index in m.u:
                    self._forces.setdefault(item.of, {})[m.u.index(item.index)] = item.entries[0]
        forces = [
            [
                sm.Add(*(rate_matrix[j, i] * force for j, force in force_terms.items()))
                for force_terms in self._forces.values()
            ]
            for i in range(len(m.q))
        ]
        has_potential = potential is not None
        return LagrangeEnergyTerms(
            kinetic=energy,
            potential=potential,
            momenta=[self._differentiate(energy, {rate: sm.S.One}) for rate in rates],
            kinetic_derivatives=[self._differentiate(energy, {q: sm.S.One}) for q in m.q],
            potential_derivatives=[self._differentiate(potential, {q: sm.S.One}) for q in m.q] if has_potential else [],
            potential_time_derivative=self._differentiate(potential, {m.t: sm.S.One}) if has_potential else sm.S.Zero,
            kinetic_time_derivative=self._differentiate(energy, {m.t: sm.S.One}),
            forces=forces,
            rates=rates,
            intermediates=(*self.first, *k.assignments),
        )

    def _list_lagrange_quantities(self) -> Iterator[TheoryQuantity]:
        """Yield Lagrange's quantities: energies, momenta, their rates, and the slopes of T, or of a given L, by q."""
        m, terms = self.m, self.get_lagrange_terms()
        yield TheoryQuantity("L" if m.is_lagrangian_only else "energy T", "", None, terms.kinetic)
        if terms.potential is not None and not m.is_lagrangian_only:
            yield TheoryQuantity("energy V", "", None, terms.potential)
        for q, momentum, slope in zip(m.q, terms.momenta, terms.kinetic_derivatives, strict=True):
            yield TheoryQuantity("p", "", q, momentum)
            yield TheoryQuantity("dp", "", q, self._differentiate(momentum, {**m.rates(terms.rates), **self._motion}))
            yield TheoryQuantity("dL" if m.is_lagrangian_only else "dT", "", q, slope)
        for n, name in enumerate(self._forces):
            for q, forces in zip(m.q, terms.forces, strict=True):
                if forces[n] != 0:
                    yield TheoryQuantity("Q", name, q, forces[n])

    def _list_momenta(self) -> Iterator[TheoryQuantity]:
        """Yield the generalized momentum ∂T/∂q' of each coordinate."""
        for q, momentum in zip(self.m.q, self.get_lagrange_terms().momenta, strict=True):
            yield TheoryQuantity("p", "", q, momentum)

    def _list_first_integrals(self) -> Iterator[TheoryQuantity]:
        """Yield first integrals: of cyclic coordinates, of energy, and of linear and angular momentum."""
        finder = FirstIntegralFinder(
            self.kinematics, None if self.explain_unavailable("lagrange") else self.get_lagrange_terms()
        )
        yield from finder.find_momentum_integrals()
        yield from finder.find_energy_integral()
        yield from finder.find_momentum_components()

    def _differentiate(self, expression: sm.Expr, seeds: Mapping[sm.Symbol, sm.Expr]) -> sm.Expr:
        """Return the derivative along ``seeds`` (symbol → rate), through all intermediates; slopes get names too."""
        chain = [*self.first, *self.kinematics.assignments]
        needed_symbols = set(expression.free_symbols)
        for item in reversed(chain):
            if item.symbol in needed_symbols:
                needed_symbols |= item.expression.free_symbols
        slopes = {symbol: rate for symbol, rate in seeds.items() if symbol in needed_symbols}
        for item in chain:
            if item.symbol in needed_symbols and item.symbol not in slopes:
                slope = total_time_derivative(item.expression, slopes)
                if slope != 0:
                    slopes[item.symbol] = self.kinematics.name(slope, f"d_{item.symbol.name}")
        return total_time_derivative(expression, slopes)

    def _list_coordinate_rates(self) -> tuple[dict[sm.Symbol, sm.Expr], sm.MatrixBase]:
        """Return symbols of q' with those of q'', and ∂u/∂q'; the speeds themselves where they are q'."""
        m = self.m
        if sm.eye(len(m.u)) == m.kinematics.matrix and m.kinematics.offset.is_zero_matrix:
            return dict(zip(m.u, m.u_dot, strict=True)), sm.eye(len(m.u))
        rates = [self.kinematics.make_symbol(f"{q.name}_dot") for q in m.q]
        seconds = [self.kinematics.make_symbol(f"{q.name}_ddot") for q in m.q]
        self.rates |= {rate: (q, 1) for q, rate in zip(m.q, rates, strict=True)}
        self.rates |= {second: (q, 2) for q, second in zip(m.q, seconds, strict=True)}
        inverse = invert_block_matrix(m.kinematics.matrix)
        speeds = inverse * (sm.Matrix(rates) - m.kinematics.offset)
        self.first = [SymbolAssignment(u, e) for u, e in zip(m.u, speeds, strict=True)]
        return dict(zip(rates, seconds, strict=True)), inverse


def _has_inertia(body: Body) -> bool:
    """Return whether the body has an inertia."""
    return body.inertia is not None and not body.inertia.is_zero_matrix


def _column(components: Components) -> sm.ImmutableMatrix:
    """Return components as a column matrix, 3 × 1."""
    return sm.ImmutableMatrix(3, 1, list(components))


def _inertia_torque(body: Body, k: SymbolicKinematics) -> Components:
    """-(I α + ω × I ω) in N."""
    assert body.inertia is not None
    R, omega = k.rotation(body.frame), k.omega(body.frame)
    inertia = (R * body.inertia * R.T).applyfunc(lambda e: k.name(e, f"I_{body.name}"))
    momentum = k.name_components(multiply_matrix_by_vector(inertia, omega), f"H_{body.name}")
    rate = add_vector_components(
        multiply_matrix_by_vector(inertia, k.alpha(body.frame)), cross_product(omega, momentum)
    )
    return scale_components(sm.S.NegativeOne, rate)
