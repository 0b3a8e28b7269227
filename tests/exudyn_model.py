"""The same flexible body in Exudyn: its floating frame of reference with the same nodes, mode shapes and matrices.

Exudyn has formulation, integrator and inertia of its own; what it takes of ours are the mode shapes alone.
Source: A. Zwölfer, J. Gerstmayr, The nodal-based floating frame of reference formulation with modal reduction, Acta
Mechanica 232 (2021) 835-851.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import exudyn as exu
import numpy as np
import scipy.sparse
from exudyn.FEM import FEMinterface, ObjectFFRFreducedOrderInterface
from exudyn.itemInterface import (
    GenericJoint,
    LoadForceVector,
    MarkerBodyRigid,
    MarkerNodeRigid,
    MarkerSuperElementPosition,
    ObjectGround,
    SensorSuperElement,
)

from mb2fmu import FlexibleBody

FEW_STEPS, MANY_STEPS = 10_000, 20_000
"""Of the trapezoidal rule over the whole time; its error falls with the square."""


@dataclass(frozen=True)
class FiniteElements:
    """Matrices K and M, shape (3 n, 3 n), and nodes (n, 3)."""

    K: scipy.sparse.csr_array
    M: scipy.sparse.csr_array
    nodes: np.ndarray


@dataclass
class ExudynSystem:
    """A system of Exudyn that grows by items, with one flexible body.

    Attributes:
        mbs: Exudyn's system.
        ground: Marker at the origin of the ground.
        flexible: Numbers of the flexible body's nodes and object.
    """

    mbs: Any
    ground: Any
    flexible: dict[str, Any]

    def frame(self) -> Any:
        """Return a marker of the flexible body's frame, which does not bend."""
        return self.mbs.AddMarker(MarkerNodeRigid(nodeNumber=self.flexible["nRigidBody"]))

    def node(self, number: int) -> Any:
        """Return a marker that moves with a node."""
        marker = MarkerSuperElementPosition(
            bodyNumber=self.flexible["oFFRFreducedOrder"], meshNodeNumbers=[number], weightingFactors=[1.0]
        )
        return self.mbs.AddMarker(marker)

    def add_weight(self, elements: FiniteElements, acceleration: float) -> None:
        """Add the weight along -y, at a marker whose displacement is that of the mass centre.

        Exudyn's own ``LoadMassProportional`` gives another motion than these forces (version 1.13: perhaps its
        moment has the undeformed body's arm).
        """
        shares = np.asarray(elements.M[0::3, 0::3].sum(axis=1)).ravel()
        marker = MarkerSuperElementPosition(
            bodyNumber=self.flexible["oFFRFreducedOrder"],
            meshNodeNumbers=list(range(len(shares))),
            weightingFactors=list(shares / np.sum(shares)),
        )
        force = [0.0, -acceleration * float(np.sum(shares)), 0.0]
        self.mbs.AddLoad(LoadForceVector(markerNumber=self.mbs.AddMarker(marker), loadVector=force))

    def pin(self, *markers: Any) -> None:
        """Join two frames by a pin about z."""
        self.mbs.AddObject(GenericJoint(markerNumbers=list(markers), constrainedAxes=[1, 1, 1, 1, 1, 0]))


def make_system(body: FlexibleBody, elements: FiniteElements, start: np.ndarray, **motion: Any) -> ExudynSystem:
    """Return a system with the flexible body.

    Args:
        body: Gives the mode shapes.
        elements: What it was made of.
        start: Modal coordinates, shape (m,), m.
        motion: Of the frame, as ``AddObjectFFRFreducedOrder`` takes it.
    """
    n, m = len(elements.nodes), body.data.mode_count
    fem = FEMinterface()
    fem.nodes = {"Position": elements.nodes}
    fem.massMatrix, fem.stiffnessMatrix = scipy.sparse.csr_matrix(elements.M), scipy.sparse.csr_matrix(elements.K)
    shapes = body.data.modes[:, :n].reshape(m, 3 * n).T.copy()
    fem.modeBasis = {"matrix": shapes, "type": "NormalModes"}
    fem.surface = [{"Name": "drawn", "Trigs": np.array([[0, 1, 2]])}]
    mbs = exu.SystemContainer().AddSystem()
    flexible = ObjectFFRFreducedOrderInterface(fem).AddObjectFFRFreducedOrder(mbs, **motion)
    mbs.SetNodeParameter(flexible["nGenericODE2"], "initialCoordinates", [float(eta) for eta in start])
    ground = mbs.AddMarker(MarkerBodyRigid(bodyNumber=mbs.AddObject(ObjectGround())))
    return ExudynSystem(mbs, ground, flexible)


def simulate_node(
    make: Callable[[], ExudynSystem], node: int, stop: float, samples: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return times (t,), positions of a node (t, 3) and the difference of the two extrapolated solutions.

    The trapezoidal rule conserves what oscillates; two step sizes are extrapolated to none (Richardson), three tell how
    far that has converged.

    Args:
        make: Makes the system afresh.
        node: Its number.
        stop: s.
        samples: Number of times after the start.
    """
    runs = [_run(make(), node, stop, samples, steps) for steps in (FEW_STEPS // 2, FEW_STEPS, MANY_STEPS)]
    coarse, fine = (second[:, 1:] + (second[:, 1:] - first[:, 1:]) / 3 for first, second in itertools.pairwise(runs))
    return runs[0][:, 0], fine, float(np.max(np.abs(fine - coarse)))


def _run(system: ExudynSystem, node: int, stop: float, samples: int, steps: int) -> np.ndarray:
    """Return time and position of a node, shape (t, 4), by steps of one size."""
    mbs = system.mbs
    sensor = mbs.AddSensor(
        SensorSuperElement(
            bodyNumber=system.flexible["oFFRFreducedOrder"],
            meshNodeNumber=node,
            storeInternal=True,
            outputVariableType=exu.OutputVariableType.Position,
        )
    )
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = stop / samples
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime, integration.verboseMode = steps, stop, 0
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance = 1e-11
    integration.generalizedAlpha.useNewmark = True
    integration.generalizedAlpha.useIndex2Constraints = True
    mbs.SolveDynamic(settings)
    return np.array(mbs.GetSensorStoredData(sensor))
