"""Flexible bodies: linear elasticity by modes, as a rigid body and particles that any mechanics take.

Input: arrays of nodes, masses, mode shapes and stiffness. Output: a ``FlexibleBody``, SymPy frames, points, bodies and
loads.

Promises: the rigid body and the particles have the inertia of the given mass matrix for every motion of frame and
modes (``flexible_body_equivalent``: 1e-12); stiffness and damping are loads without resultant. So formulations,
validation and pictures see nothing new. What is wrong with the arrays is raised together.

Must not: form equations, or know of programs and FMUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.model.flexible.beam_section import BeamSection
    from mb2fmu.model.flexible.flexible_body import FlexibleBody
    from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData

__all__ = ["BeamSection", "FlexibleBody", "FlexibleBodyModalData"]

__getattr__ = import_on_first_use(
    __name__,
    {
        "beam_section": "BeamSection",
        "flexible_body": "FlexibleBody",
        "modal_data": "FlexibleBodyModalData",
    },
)
