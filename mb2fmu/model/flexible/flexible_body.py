"""FlexibleBody: a linear flexible body as SymPy objects, a rigid body and particles, that any mechanics take.

A modal force Q_k has no point of the body to act at, and needs none. Massless points C_k lie η_k away from the frame's
origin along its x axis: a force Q_k along x at C_k and the opposite one at the origin are two forces on one line. They
have no resultant and no moment, and the power Q_k η_k'. So stiffness and damping are loads, exact in every formulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
import sympy as sm
from sympy.physics.mechanics import Inertia, Particle, Point, ReferenceFrame, RigidBody, System, inertia
from sympy.physics.vector import Vector, dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.declarations.appearance_declarations import FlexibleMeshShape
from mb2fmu.model.flexible.beam_modal_data import BeamProperties, BeamTheory, make_beam_modal_data
from mb2fmu.model.flexible.beam_section import BeamSection
from mb2fmu.model.flexible.calculix_files import read_calculix_files
from mb2fmu.model.flexible.component_modes import reduce_finite_elements
from mb2fmu.model.flexible.deformable_surface_meshes import make_node_surface, make_section_outline, make_tube_surface
from mb2fmu.model.flexible.flexible_body_equivalent import find_particle_equivalent
from mb2fmu.model.flexible.flexible_body_from_sid import read_sid_data
from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData, convert_frequency_limit_to_hertz, make_modal_data
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.variable_naming import is_variable_name

if TYPE_CHECKING:
    from mb2fmu.model import Model

Array = npt.NDArray[np.float64]

NEGLIGIBLE_ENTRY = 1e-15
"""Entries of mode shapes below this share of the largest one are rounding errors, and no terms of the equations."""


class FlexibleBody:
    """A flexible body: small elastic displacements, by modes, of a frame that moves freely.

    Displacement of a node in the frame is Σ φ_k η_k + ½ Σ S_kl η_k η_l, with modal coordinates η in m. The body *is* a
    rigid body and some particles (:attr:`bodies`); joints, loads, sensors and further bodies take ``point(node)`` and
    ``frame(node)``. Mode shapes decide what the frame is fixed to: shapes that vanish at the root make it the root's.

    Example:
        A cantilever that turns on a pin::

            beam = mb2fmu.FlexibleBody("beam", nodes=X, mass=m, modes=phi, stiffness=k, damping=0.01)
            system.add_joints(me.PinJoint("pin", ground, beam.body, theta, omega, child_point=beam.point(0)))
            beam.add_to_system(system)
            model = mb2fmu.Model("Blade", system)
            model.add(beam)

    Args:
        name: In front of the names of its variables.
        nodes: Positions at rest in the body's frame, shape (n, 3), m.
        mass: Lumped masses, shape (n,); or the mass matrix of one component, (n, n), or of all, (3 n, 3 n), in which
            x, y and z are alike and uncoupled; kg. Sparse matrices of SciPy are taken.
        modes: Mode shapes φ, shape (m, n, 3), m of displacement per m of the modal coordinate.
        stiffness: Modal stiffness, shape (m,) or (m, m), N/m.
        damping: Damping ratios in ascending order of the eigenfrequencies, a number or shape (m,); or the modal damping
            matrix, shape (m, m), N·s/m.
        rotations: Small rotations ψ of the nodes by each mode, shape (m, n, 3), rad/m; for :meth:`frame`. NaN at nodes
            whose rotation is not known.
        rotational_inertia: Inertia of each node's section, shape (n, 3) or (n, 3, 3), kg·m².
        second_order: Second-order displacements S, shape (m, m, n, 3), 1/m: a beam's foreshortening, which makes it
            stiffer as it spins; None: none.
        start: Modal coordinates at the start, shape (m,), m; zero unless given.
        interfaces: Name → number of a node, for :meth:`point` and :meth:`frame`.

    Attributes:
        data: The arrays in their full shapes.
        q: Modal coordinates η_1, …, η_m, functions of time.
        u: Modal speeds.
        kinematic_equations: η_k' - u_k.
        interfaces: Name → number of the node, of a finite element model.
        body: The rigid body that has the frame; joints and ``System`` take it.
        bodies: ``body`` and the particles.
        loads: Stiffness and damping, (point, vector) pairs.

    Raises:
        ModelError: With every fault of the arrays.
    """

    def __init__(
        self,
        name: str,
        *,
        nodes: Any,
        mass: Any,
        modes: Any,
        stiffness: Any,
        damping: Any = 0.0,
        rotations: Any = None,
        rotational_inertia: Any = None,
        second_order: Any = None,
        start: Sequence[float] | None = None,
        interfaces: Mapping[str, int] | None = None,
    ) -> None:
        where = find_user_source_line()
        data = make_modal_data(
            nodes=nodes,
            mass=mass,
            modes=modes,
            stiffness=stiffness,
            damping=damping,
            rotations=rotations,
            rotational_inertia=rotational_inertia,
            second_order=second_order,
            where=where,
        )
        self.interfaces = dict(interfaces or {})
        self._set_up(name, data, start, where)

    @classmethod
    def beam(
        cls,
        name: str,
        *,
        length: float,
        E: float,
        rho: float,
        section: BeamSection,
        modes: Mapping[str, int] | Sequence[str],
        up_to: float | str | None = None,
        ends: tuple[str, str] = ("clamped", "free"),
        axis: str = "x",
        G: float | None = None,
        theory: BeamTheory = "euler-bernoulli",
        rotary_inertia: bool = True,
        foreshortening: bool = True,
        damping: Any = 0.0,
        stations: Sequence[float] = (),
        start: Sequence[float] | None = None,
    ) -> Self:
        """Return a straight uniform beam; its root is the origin of its frame, its tip lies on the axis.

        Example:
            A blade with two modes in each plane::

                blade = mb2fmu.FlexibleBody.beam("blade", length=2.0, E=70e9, rho=2700.0,
                    section=mb2fmu.BeamSection.rectangle(0.02, 0.08), modes={"bending_y": 2, "bending_z": 2})

        Args:
            name: In front of the names of its variables.
            length: m.
            E: Young's modulus, Pa.
            rho: Density, kg/m³.
            section: Area and moments; its y and z are those of the body if the axis is x, else in cyclic order (of a
                beam along y the body's z and x, of one along z the body's x and y).
            modes: Number of modes of each family: ``bending_y``, ``bending_z`` (displacement along y, z; of another
                axis the two that lie across), ``torsion``, ``extension``; or names of families, with ``up_to``.
            up_to: Frequency limit, Hz, or text with a unit (``"200 Hz"``): all modes of the families below it.
            ends: (root, tip), each ``clamped``, ``pinned`` or ``free``: how the body's frame holds the shapes. Where
                ends leave a rigid motion, the shapes have no momentum in it. A pinned tip slides along the axis.
            axis: ``x``, ``y`` or ``z`` of the body's frame.
            G: Shear modulus, Pa; of torsion, and of the theory of Timoshenko.
            theory: ``euler-bernoulli``, or ``timoshenko``: with shear, which short beams and high modes need.
            rotary_inertia: False leaves out the rotational inertia of sections, as the textbooks' closed forms do: the
                beam is then a line of mass, which has no torsion.
            foreshortening: Whether bending shortens the beam, of second order: needed where it spins or is pulled. Not
                for ends that are both held along the beam: bending stretches it then, which no mode resists.
            damping: As of :class:`FlexibleBody`.
            stations: Further nodes, distances from the root in m; root and tip are nodes 0 and -1 always.
            start: As of :class:`FlexibleBody`; modes stand in ascending order within families, in the families' order.

        Raises:
            ModelError: With every fault of the numbers.
        """
        where = find_user_source_line()
        properties = BeamProperties(length, E, rho, section, G, theory, rotary_inertia, axis, ends)
        data = make_beam_modal_data(
            properties, modes, up_to, foreshortening=foreshortening, damping=damping, stations=stations, where=where
        )
        return cls(name, **data.arrays(), start=start)

    @classmethod
    def from_finite_elements(
        cls,
        name: str,
        *,
        K: Any,
        M: Any,
        nodes: Any,
        interfaces: Mapping[str, Sequence[int]],
        modes: int = 10,
        up_to: float | str | None = None,
        damping: Any = 0.0,
        start: Sequence[float] | None = None,
    ) -> Self:
        """Return the reduced body of a finite element model of solid elements, after Craig and Bampton.

        ``point("tip")`` and ``frame("tip")`` are those of an interface, whose nodes move as a rigid patch; the body's
        frame is fixed to the first interface, with the axes of the nodes' coordinates and the same origin. Without
        interfaces it is a mean frame of the free body.

        Args:
            name: In front of the names of its variables.
            K: Stiffness matrix, sparse or dense, shape (3 n, 3 n), in the order x_1, y_1, z_1, x_2, …, N/m; without
                supports.
            M: Mass matrix in the same order, kg; consistent or lumped.
            nodes: Shape (n, 3), m.
            interfaces: Name → numbers of its nodes, from 0. An interface whose nodes lie on a line (such as one node
                alone) has no ``frame``, and cannot be the first one.
            modes: Number of fixed-interface modes, fewer where the nodes between have less, more where ``up_to`` asks
                for them; each further interface adds its constraint modes (up to 6).
            up_to: Frequency limit of the modes that are kept, Hz, or text with a unit: all below it; None: all are.
            damping: As of :class:`FlexibleBody`, of all modes, also of those that ``up_to`` drops.
            start: As of :class:`FlexibleBody`.

        Raises:
            ModelError: With every fault of the matrices and interfaces.
        """
        where = find_user_source_line()
        X = np.asarray(nodes, dtype=float)
        reduced = reduce_finite_elements(K, M, X, interfaces, modes, _limit_in_hertz(up_to), where)
        padding = scipy.sparse.csr_array((3 * len(interfaces), 3 * len(interfaces)))
        data = make_modal_data(
            nodes=np.vstack([X, reduced.centres]),
            mass=scipy.sparse.block_diag([scipy.sparse.csr_array(M), padding], format="csr"),
            modes=reduced.modes,
            stiffness=reduced.stiffness,
            damping=damping,
            rotations=np.concatenate([np.full((len(reduced.modes), len(X), 3), np.nan), reduced.rotations], axis=1),
            up_to=up_to,
            where=where,
        )
        numbers = {label: len(X) + i for i, label in enumerate(interfaces)}
        return cls(name, **data.arrays(), start=start, interfaces=numbers)

    @classmethod
    def from_calculix(
        cls,
        name: str,
        job: Path | str,
        *,
        interfaces: Sequence[str],
        modes: int = 10,
        up_to: float | str | None = None,
        damping: Any = 0.0,
        start: Sequence[float] | None = None,
        millimetres: bool = False,
    ) -> Self:
        """Return the reduced body of a model of CalculiX; see :meth:`from_finite_elements`.

        Example:
            The step of ``bar.inp``, without supports, is ``*FREQUENCY, SOLVER=MATRIXSTORAGE``::

                FlexibleBody.from_calculix("bar", "bar", interfaces=["ROOT", "TIP"], up_to="3 kHz")

        Args:
            name: In front of the names of its variables.
            job: Path of the job without suffix. Read are nodes and node sets of ``job.inp``, and the matrices of
                ``job.sti`` and ``job.mas`` with ``job.dof``. Supports, couplings, turned axes, included files, shells
                and beams are refused by name.
            interfaces: Names of node sets, which move as rigid patches.
            modes: As of :meth:`from_finite_elements`.
            up_to: Likewise.
            damping: Likewise.
            start: Likewise.
            millimetres: True if the files are in mm, N and t; False: in m, N and kg.

        Raises:
            ModelError: With everything of the files that is not read.
        """
        where = find_user_source_line()
        model = read_calculix_files(job, millimetres=millimetres)
        missing = [label for label in interfaces if not model.node_sets.get(label.upper())]
        if missing:
            what, known = f"there are no node sets {', '.join(missing)}", ", ".join(model.node_sets) or "none"
            fault = Fault(what, where, f"the sets of the file are {known}")
            raise ModelError("the interfaces cannot be used:", [fault])
        return cls.from_finite_elements(
            name,
            K=model.K,
            M=model.M,
            nodes=model.nodes,
            interfaces={label: model.node_sets[label.upper()] for label in interfaces},
            modes=modes,
            up_to=up_to,
            damping=damping,
            start=start,
        )

    @classmethod
    def from_sid(
        cls, name: str, path: Path | str, *, damping: Any = None, start: Sequence[float] | None = None
    ) -> Self:
        """Return the body of a file of standard input data (SID), as finite element pre-processors write it.

        ``point("2519")`` and ``frame("2519")`` are those of a node by its name in the file. Modal coordinates have the
        file's scale: in m where mode shapes have no unit.

        Args:
            name: In front of the names of its variables.
            path: Of the file, in SI units: mass, mdCM, J, Ct, Cr, Me, Gr, Ge, Oe, Ke, De, and of the nodes origin, phi,
                psi are read. Geometric stiffness, stresses and turned frames of nodes are refused by name.
            damping: As of :class:`FlexibleBody`, in place of the file's De.
            start: As of :class:`FlexibleBody`.

        Raises:
            ModelError: With everything of the file that is not read.
        """
        where = find_user_source_line()
        data, interfaces = read_sid_data(path)
        given = data.arrays() | ({} if damping is None else {"damping": damping})
        body = cls(name, **given, start=start, interfaces=interfaces)
        body.where = where
        return body

    def _set_up(self, name: str, data: FlexibleBodyModalData, start: Sequence[float] | None, where: str) -> None:
        """Make symbols, frame, bodies and loads of checked arrays."""
        self.name, self.data, self.where = name, data, where
        m = data.mode_count
        self.start = np.zeros(m) if start is None else np.asarray(start, dtype=float)
        if self.start.shape != (m,):
            what = f"{len(np.atleast_1d(self.start))} start values for {m} modes"
            raise ModelError(
                f"the flexible body {name} cannot be used:", [Fault(what, where, f"give start with {m} numbers")]
            )
        stem = self._stem
        self.q = tuple(dynamicsymbols(f"{stem}_eta{k + 1}") for k in range(m))
        self.u = tuple(dynamicsymbols(f"{stem}_eta{k + 1}_dot") for k in range(m))
        t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        self.kinematic_equations = tuple(q.diff(t) - u for q, u in zip(self.q, self.u, strict=True))
        self._frame, self._origin = ReferenceFrame(f"{stem}_frame"), Point(f"{stem}_origin")
        self._points: dict[int, Point] = {}
        self._frames: dict[int, tuple[ReferenceFrame, ...]] = {}
        self._interfaces: dict[int, RigidBody] = {}
        self.body, *self.particles = self._make_bodies()
        self.bodies: tuple[RigidBody | Particle, ...] = (self.body, *self.particles)
        self.stiffness_symbols = sm.symbols(f"{stem}_stiffness1:{m + 1}", real=True)
        self.damping_symbols = sm.symbols(f"{stem}_damping1:{m + 1}", real=True)
        self.loads = tuple(self._make_loads())

    @property
    def _stem(self) -> str:
        """Beginning of the names of SymPy objects."""
        return self.name.replace(".", "_")

    def point(self, node: int | str | None = None) -> Point:
        """Return the point that moves with a node; without a node the origin of the body's frame.

        Args:
            node: Number of the node, from 0, negative ones from the last; or the name of an interface.
        """
        if node is None:
            return self._origin
        number = self.find_node_number(node)
        if number not in self._points:
            second = None if self.data.second_order is None else self.data.second_order[:, :, number]
            place = self._displaced(self.data.nodes[number], self.data.modes[:, number], second)
            if place == Vector(0):
                return self._origin
            self._points[number] = self._locate(f"{self._stem}_node{number}", place)
        return self._points[number]

    def frame(self, node: int | str | None = None) -> ReferenceFrame:
        """Return the frame that turns with a node's section; without a node the body's own frame.

        It is the body's frame turned by the angles Σ ψ_k η_k about x, y and z (one after the other; they are small).

        Args:
            node: Number of the node, from 0, negative ones from the last; or the name of an interface.

        Raises:
            ModelError: If the rotations of nodes were not given.
        """
        return self._frame if node is None else self.section_frames(node)[-1]

    def section_frames(self, node: int | str) -> tuple[ReferenceFrame, ...]:
        """Return the body's frame, and those between it and a node's, each turned about one axis of the one before.

        Raises:
            ModelError: If the rotations of nodes were not given.
        """
        number = self.find_node_number(node)
        if self.data.rotations is None or np.any(np.isnan(self.data.rotations[:, number])):
            what = f"how node {number} of {self.name} turns is not known"
            remedy = "give rotations=…, (m, n, 3); of finite elements an interface of nodes that do not lie on a line"
            raise ModelError("a node has no frame:", [Fault(what, find_user_source_line(), remedy)])
        if number not in self._frames:
            angles = [self._combine(self.data.rotations[:, number, i]) for i in range(3)]
            turning = [i for i in range(3) if angles[i] != 0]
            if not turning:
                return (self._frame,)
            frames = [self._frame]
            for i in turning:
                axis = "" if i == turning[-1] else f"_{'xyz'[i]}"
                frames.append(ReferenceFrame(f"{self._stem}_section{number}{axis}"))
                frames[-1].orient_axis(frames[-2], list(frames[-2])[i], angles[i])
            self._frames[number] = tuple(frames)
        return self._frames[number]

    def places(self) -> Iterator[tuple[Point, ReferenceFrame | None]]:
        """Yield the origin and the points that were requested, with the frames there, and those of modal forces."""
        yield self._origin, self._frame
        for number, point in self._points.items():
            yield point, self._frames[number][-1] if number in self._frames else None
        yield from ((carrier, None) for carrier, _ in self.loads[::2])

    def select_loads(self, loads: Iterable[Any]) -> tuple[Any, ...]:
        """Return those of a mechanics' loads that are the body's stiffness and damping."""
        return tuple(load for load in loads if any(_is_same_load(load, pair) for pair in self.loads))

    def interface(self, node: int | str) -> RigidBody:
        """Return a massless rigid body at a node, as a parent of SymPy's joints."""
        number = self.find_node_number(node)
        if number not in self._interfaces:
            frame = self.frame(number)
            still = inertia(frame, 0, 0, 0)
            name = f"{self._stem}_interface{number}"
            point = self.point(number)
            self._interfaces[number] = RigidBody(name, point, frame, sm.S.Zero, (still, point))
        return self._interfaces[number]

    def node_near(self, position: Sequence[float]) -> int:
        """Return the number of the node that is nearest to a position in the body's frame at rest, (x, y, z) in m."""
        return int(np.argmin(np.linalg.norm(self.data.nodes - np.asarray(position, dtype=float), axis=1)))

    def weight(self, acceleration: Vector) -> tuple[tuple[Point, Vector], ...]:
        """Return the loads of uniform gravity, for mechanics that have no ``apply_uniform_gravity``.

        Args:
            acceleration: Of free fall, such as ``-g * N.y``.
        """
        return tuple((body.masscenter, body.mass * acceleration) for body in self.bodies)

    def add_to_system(self, system: System) -> None:
        """Add bodies, modal coordinates and speeds, their kinematic equations and the loads to a SymPy ``System``.

        Do so before ``system.apply_uniform_gravity``, which pulls at the bodies that are there.

        Args:
            system: It may have :attr:`body` already, by a joint.
        """
        system.add_bodies(*(body for body in self.bodies if body not in system.bodies))
        system.add_coordinates(*self.q)
        system.add_speeds(*self.u)
        system.add_kdes(*self.kinematic_equations)
        system.add_loads(*self.loads)

    def draw(
        self,
        model: Model,
        *,
        faces: Any = None,
        radius: float | None = None,
        box: tuple[float, float] | None = None,
        scale: float = 1.0,
        color: str = "",
        opacity: float = 1.0,
    ) -> None:
        """Draw the body as it bends: the triangles of a mesh, or a tube along the nodes of a beam.

        Displacements are those of first order, without a beam's foreshortening.

        Args:
            model: That the body is added to.
            faces: Numbers of the nodes of each triangle, shape (f, 3).
            radius: Of a round tube, m.
            box: Edges of a rectangular tube, m, as width and height of the section.
            scale: By how much pictures enlarge the elastic displacements.
            color: ``#rrggbb``.
            opacity: 0 … 1.

        Raises:
            ModelError: If faces are no triangles of the nodes.
        """
        where = find_user_source_line()
        if sum(given is not None for given in (faces, radius, box)) != 1:
            fault = Fault("one of faces, radius and box says what is drawn", where, "give one of them")
            raise ModelError("the flexible body cannot be drawn:", [fault])
        if faces is None:
            vertices, triangles, shapes = make_tube_surface(self.data, make_section_outline(radius, box))
        else:
            vertices, triangles, shapes = make_node_surface(self.data, faces, where)
        carriers = tuple(self.loads[2 * k][0] for k in range(len(self.q)))
        model.appearance_items.append(
            FlexibleMeshShape(
                body=self.body,
                origin=self._origin,
                carriers=carriers,
                vertices=vertices,
                faces=triangles,
                shapes=shapes,
                scale=scale,
                color=color,
                opacity=opacity,
                where=where,
            )
        )

    @cached_property
    def strain_energy(self) -> sm.Expr:
        """Potential energy ½ ηᵀ K η of the deformation, J."""
        eta = sm.Matrix(self.q)
        return (eta.T * self._stiffness * eta)[0] / 2

    def add_to(self, model: Model) -> Iterable[Fault]:
        """Declare modal coordinates, speeds, parameters and outputs; ``model.add`` calls it.

        Modal coordinates are ``name.eta[1]``, …, speeds ``name.eta_dot[1]``, …; parameters are ``name.stiffness[1]``, …
        and, where there is damping, ``name.damping[1]``, … (the diagonals of the modal matrices); the output
        ``name.strain_energy``.

        Args:
            model: With mechanics that have the bodies, coordinates and loads already.
        """
        faults = [*self._faults(model)]
        if faults:
            return faults
        self.declare_variables(model)
        own = self.select_loads(mechanics_source.loads(model.mechanics))
        model.hide(*self.particles)
        model.known_potentials.append((own, self.strain_energy))
        return []

    def declare_variables(self, model: Model) -> None:
        """Declare modal coordinates, speeds, parameters and the strain energy, without a look at the mechanics."""
        model.named_elements["FlexibleBody", self.name] = self.where
        for k, (q, u) in enumerate(zip(self.q, self.u, strict=True)):
            index, mode = f"[{k + 1}]", f"of mode {k + 1}"
            model.coordinate(
                q, self.start[k], "m", name=f"{self.name}.eta{index}", description=f"modal coordinate {mode}"
            )
            model.speed(u, 0.0, "m/s", name=f"{self.name}.eta_dot{index}", description=f"modal speed {mode}")
            for kind, symbol, value, unit in self._parameters(k):
                model.parameter(
                    symbol, value, unit, name=f"{self.name}.{kind}{index}", min=0.0, description=f"modal {kind} {mode}"
                )
        model.output(f"{self.name}.strain_energy", self.strain_energy, "J", description="of the deformation")
        model.flexible_bodies.append(self)

    def _faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of the name, and parts that the mechanics lack."""
        label = f"FlexibleBody {self.name}"
        if not is_variable_name(self.name) or "(" in self.name:
            remedy = "take letters, digits, _ and dots"
            yield Fault(f"{label}: the name cannot stand in front of a variable's", self.where, remedy)
        if ("FlexibleBody", self.name) in model.named_elements:
            remedy = "give one of them another name"
            yield Fault(f"{label}: another flexible body has this name", self.where, remedy)
        mechanics = model.mechanics
        given = mechanics_source.loads(mechanics)
        lacking = {
            "bodies": [b for b in self.bodies if not any(b is other for other in mechanics_source.bodies(mechanics))],
            "coordinates": [q for q in self.q if q not in mechanics_source.coordinates(mechanics)],
            "speeds": [u for u in self.u if u not in mechanics_source.speeds(mechanics).all],
            "loads": [pair for pair in self.loads if not any(_is_same_load(load, pair) for load in given)],
        }
        missing = [f"{len(items)} of its {kind}" for kind, items in lacking.items() if items]
        if missing:
            remedy = "call its add_to_system(system), or give Parts and KanesMethod its bodies, q, u, "
            remedy += "kinematic_equations and loads"
            yield Fault(f"{label}: the mechanics lack {', '.join(missing)}", self.where, remedy)

    def _parameters(self, k: int) -> Iterator[tuple[str, sm.Symbol, float, str]]:
        """Yield (kind, symbol, value, unit) of the parameters of a mode."""
        yield "stiffness", self.stiffness_symbols[k], float(self.data.stiffness[k, k]), "N/m"
        if self._damping[k, k] == self.damping_symbols[k]:
            yield "damping", self.damping_symbols[k], float(self.data.damping[k, k]), "N.s/m"

    @cached_property
    def _stiffness(self) -> sm.Matrix:
        """Modal stiffness: symbols on the diagonal, numbers beside it."""
        return _with_symbols(self.data.stiffness, self.stiffness_symbols)

    @cached_property
    def _damping(self) -> sm.Matrix:
        """Modal damping, likewise."""
        return _with_symbols(self.data.damping, self.damping_symbols)

    def find_node_number(self, node: int | str) -> int:
        """Return the number of a node, counted from the first.

        Raises:
            ModelError: If there is no such node.
        """
        n = len(self.data.nodes)
        if isinstance(node, str) and node in self.interfaces:
            return self.interfaces[node]
        if not isinstance(node, int | np.integer) or not -n <= node < n:
            what, remedy = f"{self.name} has no node {node!r}", f"its nodes are 0 to {n - 1}"
            if self.interfaces:
                remedy += f", its interfaces {', '.join(self.interfaces)}"
            raise ModelError("no such node:", [Fault(what, find_user_source_line(), remedy)])
        return int(node) % n

    def _combine(self, shares: Array) -> sm.Expr:
        """Return Σ shares_k η_k."""
        return sm.Add(*(_scale(share, q) for share, q in zip(shares, self.q, strict=True) if share != 0.0))

    @cached_property
    def _products(self) -> dict[tuple[int, int], sm.Expr]:
        """η_k η_l of k ≤ l."""
        return {(k, l): self.q[k] * self.q[l] for l in range(len(self.q)) for k in range(l + 1)}

    def _locate(self, name: str, place: Vector) -> Point:
        """Return a point at a place from the frame's origin; ``locatenew`` would negate the place three times."""
        point = Point(name)
        point.set_pos(self._origin, place)
        return point

    def _displaced(self, rest: Array, modes: Array, second: Array | None) -> Vector:
        """Return the position of a point from the frame's origin; shapes (3,), (m, 3) and (m, m, 3)."""
        m = len(modes)
        components = []
        for i in range(3):
            terms = [sm.Float(rest[i])] if rest[i] != 0.0 else []
            terms.append(self._combine(modes[:, i]))
            for k in range(m if second is not None else 0):
                assert second is not None
                weights = [(l, second[k, l, i] * (0.5 if l == k else 1.0)) for l in range(k, m)]
                terms += [_scale(weight, self._products[k, l]) for l, weight in weights if weight != 0.0]
            components.append(sm.Add(*terms))
        return sum((c * axis for c, axis in zip(components, self._frame, strict=True) if c != 0), Vector(0))

    def _make_bodies(self) -> Iterator[RigidBody | Particle]:
        """Yield the rigid body, then the particles."""
        parts = find_particle_equivalent(self.data.gram_factor(), self.data.mode_count)
        B, stem = self._frame, self._stem
        size = float(np.max(np.abs(self.data.nodes), initial=0.0))
        rest = _drop_negligible(np.vstack([parts.rigid_centre, parts.positions]), size)
        modes = _drop_negligible(parts.modes, float(np.max(np.abs(parts.modes))))
        second = _drop_negligible(parts.second_order, float(np.max(np.abs(parts.second_order), initial=0.0)))
        J = _drop_negligible(parts.rigid_inertia, float(np.max(np.abs(parts.rigid_inertia))))
        centre = self._locate(f"{stem}_centre", self._displaced(rest[0], np.zeros((len(modes), 3)), None))
        dyadic = inertia(B, *(sm.Float(J[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))))
        yield RigidBody(stem, centre, B, sm.Float(parts.rigid_mass), Inertia(dyadic, centre))
        for p, mass in enumerate(parts.masses):
            name = f"{stem}_particle{p + 1}"
            place = self._displaced(rest[p + 1], modes[:, p], second[:, :, p])
            yield Particle(name, self._locate(name, place), sm.Float(mass))

    def _make_loads(self) -> Iterator[tuple[Point, Vector]]:
        """Yield stiffness and damping: two opposite forces on one line for each mode."""
        x = self._frame.x
        eta, rate = sm.Matrix(self.q), sm.Matrix(self.u)
        forces = -self._stiffness * eta - self._damping * rate
        for k, force in enumerate(forces):
            carrier = self._locate(f"{self._stem}_mode{k + 1}", self.q[k] * x)
            yield carrier, force * x
            yield self._origin, -force * x


def _scale(share: float, product: sm.Expr) -> sm.Expr:
    """Return a product of coordinates times a number, as SymPy's multiplication writes it after a long look at it."""
    return sm.Mul._from_args((sm.Float(share), *sm.Mul.make_args(product)))  # noqa: SLF001


def _limit_in_hertz(up_to: float | str | None) -> float:
    """Return a frequency limit in Hz; 0 where there is none, or none that can be read (the modal data report it)."""
    try:
        return 0.0 if up_to is None else convert_frequency_limit_to_hertz(up_to)
    except ValueError:
        return 0.0


def _with_symbols(matrix: Array, symbols: Sequence[sm.Symbol]) -> sm.Matrix:
    """Return a matrix with symbols in place of what is positive on its diagonal."""
    m = len(matrix)
    numbers = _drop_negligible(matrix, float(np.max(np.abs(matrix), initial=0.0)))
    return sm.Matrix(
        m,
        m,
        lambda k, l: symbols[k] if k == l and numbers[k, k] > 0.0 else sm.Float(numbers[k, l]) if numbers[k, l] else 0,
    )


def _drop_negligible(array: Array, size: float) -> Array:
    """Return an array with zeros in place of rounding errors."""
    return np.where(np.abs(array) > NEGLIGIBLE_ENTRY * size, array, 0.0)


def _is_same_load(load: Any, pair: tuple[Point, Vector]) -> bool:
    """Return whether a load of the mechanics is a (point, vector) pair of the body."""
    return load[0] is pair[0] and load[1] == pair[1]
