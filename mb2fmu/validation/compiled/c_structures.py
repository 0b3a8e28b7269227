"""The structures of ``equations.h``, ``bodies.h``, ``dop853.h`` and ``radau.h``, field by field, for ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

IndexArray = npt.NDArray[np.int64]

C_INTEGER = ctypes.c_int64
C_POINTER = ctypes.c_void_p

(
    STATUS_OK,
    STATUS_SINGULAR_MATRIX,
    STATUS_PROJECTION_FAILED,
    STATUS_VANISHING_STEP,
    STATUS_BUDGET_SPENT,
    STATUS_NO_MEMORY,
    STATUS_CROSSED,
    STATUS_UNSOLVED,
    STATUS_EVENT,
) = range(9)
"""What functions return: ``enum status`` of equations.h."""

COMPOSITE_SIZE = 13
"""Numbers of a composite: ``COMPOSITE`` of bodies.h."""

_NO_BYTES = ctypes.c_char * 0


def array_address(array: npt.NDArray[Any]) -> int:
    """Return the address of an array's first number; the array must live as long as C uses it."""
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array.data))
    except (TypeError, ValueError):  # read-only, or with gaps: NumPy tells the address, in five times as long
        return int(array.__array_interface__["data"][0])


def _list_c_integer_fields(names: str) -> list[tuple[str, Any]]:
    """Return fields of 64-bit integers."""
    return [(name, C_INTEGER) for name in names.split()]


def _list_c_pointer_fields(names: str) -> list[tuple[str, Any]]:
    """Return fields of pointers."""
    return [(name, C_POINTER) for name in names.split()]


class EvaluationStepStruct(ctypes.Structure):
    """``struct step``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_pointer_fields("function"),
        *_list_c_integer_fields("n k first name"),
    ]


class EvaluationPlanStruct(ctypes.Structure):
    """``struct plan``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*_list_c_pointer_fields("steps"), *_list_c_integer_fields("count")]


class _OrthogonalFactorsStruct(ctypes.Structure):
    """``struct orthogonal``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("rows columns rank"),
        *_list_c_pointer_fields("a left right pivot spare"),
    ]


PLAN_NAMES = ("holonomic", "slopes", "constraints", "dynamics", "late", "kinetic", "outputs")


class EquationsStruct(ctypes.Structure):
    """``struct equations``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("n_q n_u n_z n_r n_p n_y n_phi m rows n_independent size u_dot multipliers largest"),
        *_list_c_pointer_fields("independent dependent typical"),
        *[(name, EvaluationPlanStruct) for name in PLAN_NAMES],
        *_list_c_pointer_fields("mechanism unrolled"),
        *_list_c_integer_fields("singular"),
        *_list_c_pointer_fields("memory v results rates numbers a b vector"),
        ("constraints_turned", _OrthogonalFactorsStruct),
        ("least_norm", _OrthogonalFactorsStruct),
    ]


class InstantMotionStruct(ctypes.Structure):
    """``struct motion``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = _list_c_pointer_fields("u x_dot power kinetic outputs residual")


class TrajectoryIntegrationStruct(ctypes.Structure):
    """``struct journey``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_pointer_fields("time"),
        *_list_c_integer_fields("points"),
        *_list_c_pointer_fields("inputs parameters scales"),
        ("tolerance", ctypes.c_double),
        ("relative", ctypes.c_double),
        *_list_c_integer_fields("budget parts projected"),
        ("step", ctypes.c_double),
        *_list_c_integer_fields("spent"),
        ("stuck", ctypes.c_double),
        *_list_c_pointer_fields("modes settling"),
    ]


class RadauCoefficientsStruct(ctypes.Structure):
    """``struct collocation``; ``numbers`` are the arrays that it points to."""

    numbers: Sequence[npt.NDArray[Any]]
    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("stages"),
        *_list_c_pointer_fields("nodes coefficients halves"),
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("eigenvalues projections"),
    ]


class SwitchModesStruct(ctypes.Structure):
    """``struct modes``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("switches inputs first held_count"),
        *_list_c_pointer_fields("held rates probes effects may_hold rest_limits"),
        *_list_c_integer_fields("behind"),
        *_list_c_pointer_fields("kinds sizes values"),
        ("late", ctypes.c_double),
        *_list_c_pointer_fields("r x_dot outputs margins limits seen"),
    ]


class ContactsStruct(ctypes.Structure):
    """``struct contacts``; ``tables`` are the arrays that it points to."""

    tables: Sequence[npt.NDArray[Any]]
    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count frictions sequential first"),
        *_list_c_pointer_fields("rough poisson resting sliding impacts"),
        *_list_c_integer_fields("changes"),
    ]


class EventSettlingStruct(ctypes.Structure):
    """``struct settling``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("events conditions knows_impacts"),
        *_list_c_pointer_fields("contacts roles begin sets targets"),
        ("longest", ctypes.c_double),
        ("instant", ctypes.c_double),
        *_list_c_integer_fields("left"),
        *_list_c_pointer_fields("values inputs past"),
        ("last", ctypes.c_double),
        ("since", ctypes.c_double),
        *_list_c_integer_fields("simultaneous capacity count"),
        *_list_c_pointer_fields("records spare"),
    ]


class FunctionCallStruct(ctypes.Structure):
    """``struct group``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_pointer_fields("function places"),
        *_list_c_integer_fields("count first"),
    ]


class ExpressionGroupsStruct(ctypes.Structure):
    """``struct groups``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_pointer_fields("groups"),
        *_list_c_integer_fields("count"),
    ]


class FrameVectorTermsStruct(ctypes.Structure):
    """``struct terms``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("frame numbers speeds columns begin"),
    ]


class PathSumsStruct(ctypes.Structure):
    """``struct path_sums``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("order above first terms"),
    ]


class LoadTermsStruct(ctypes.Structure):
    """``struct pieces``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("node frame vector factor sign"),
    ]


class LoadPathwaysStruct(ctypes.Structure):
    """``struct pathways``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("first points length force"),
    ]


class MotionSensorTableStruct(ctypes.Structure):
    """``struct sensed_vectors``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("kind node place"),
    ]


class MatrixEntriesStruct(ctypes.Structure):
    """``struct entries``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("row column place"),
    ]


class _CompositeBodiesStruct(ctypes.Structure):
    """``struct composites``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("begin piece path_begin path"),
    ]


class _ParticleGroupsStruct(ctypes.Structure):
    """``struct particle_groups``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("point frame begin body term speeds_begin speeds local numbers_begin"),
        *_list_c_pointer_fields("groups_begin groups_of"),
    ]


class _RigidBranchesStruct(ctypes.Structure):
    """``struct rigid``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = _list_c_pointer_fields(
        "node turns composite point frame rows_begin rows"
    )


class NodesOnLinksStruct(ctypes.Structure):
    """``struct places``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("node link path_begin path"),
    ]


class _ArticulatedTreeStruct(ctypes.Structure):
    """``struct articulated``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("count"),
        *_list_c_pointer_fields("order parent path_begin path sign"),
        ("bodies", NodesOnLinksStruct),
        ("points", NodesOnLinksStruct),
        ("frames", NodesOnLinksStruct),
    ]


class MechanismStruct(ctypes.Structure):
    """``struct mechanism``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *_list_c_integer_fields("n_v n_w n_q n_u n_all n_z m"),
        *_list_c_pointer_fields("w"),
        ("motion", ExpressionGroupsStruct),
        ("acting", ExpressionGroupsStruct),
        *_list_c_integer_fields("n_gathered"),
        *_list_c_pointer_fields("gathered"),
        *_list_c_integer_fields("n_frames"),
        *_list_c_pointer_fields("frame_parent rotation"),
        ("frame_terms", FrameVectorTermsStruct),
        ("turning", PathSumsStruct),
        ("point_terms", FrameVectorTermsStruct),
        ("moving", PathSumsStruct),
        ("place_terms", FrameVectorTermsStruct),
        ("places_of_points", PathSumsStruct),
        *_list_c_pointer_fields("given"),
        *_list_c_integer_fields("n_bodies"),
        *_list_c_pointer_fields("masscenter body_frame mass inertia"),
        ("forces", LoadTermsStruct),
        ("torques", LoadTermsStruct),
        ("pathways", LoadPathwaysStruct),
        ("sensed", MotionSensorTableStruct),
        *_list_c_integer_fields("n_quantities"),
        *_list_c_pointer_fields("quantity_kind quantity_node quantity_slot"),
        *_list_c_integer_fields("n_potential"),
        *_list_c_pointer_fields("potential"),
        ("K", MatrixEntriesStruct),
        ("A", MatrixEntriesStruct),
        *_list_c_pointer_fields("k0 b gamma z_dot"),
        *_list_c_pointer_fields("frames_begin frames_of points_begin points_of bodies_begin bodies_of"),
        ("particle_groups", _ParticleGroupsStruct),
        ("composites", _CompositeBodiesStruct),
        ("rigid", _RigidBranchesStruct),
        ("articulated", _ArticulatedTreeStruct),
        *_list_c_pointer_fields("memory g R omega alpha position velocity acceleration F T Q"),
        *_list_c_pointer_fields("frame_numbers point_numbers place_numbers inertia_N composite group_numbers links"),
        ("power", ctypes.c_double),
    ]
