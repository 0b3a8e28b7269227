"""The structures of ``equations.h``, ``bodies.h`` and ``dop853.h``, field by field, for ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

WHOLE = ctypes.c_int64
POINTER = ctypes.c_void_p
STAGES = 12

OK, SINGULAR, ASTRAY, VANISHING, SPENT, NO_MEMORY = range(6)
"""What functions return: ``enum status`` of equations.h."""


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of an array's first number; the array must live as long as C uses it."""
    return int(array.__array_interface__["data"][0])  # array.ctypes makes an object for each call


def whole(names: str) -> list[tuple[str, Any]]:
    """Return fields of 64-bit integers."""
    return [(name, WHOLE) for name in names.split()]


def pointers(names: str) -> list[tuple[str, Any]]:
    """Return fields of pointers."""
    return [(name, POINTER) for name in names.split()]


class Step(ctypes.Structure):
    """``struct step``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*pointers("function"), *whole("n k first name")]


class Plan(ctypes.Structure):
    """``struct plan``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*pointers("steps"), *whole("count")]


class Orthogonal(ctypes.Structure):
    """``struct orthogonal``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("rows columns rank"), *pointers("a left right pivot spare")]


PLANS = ("projection", "holonomic", "slopes", "constraints", "dynamics", "late", "kinetic", "outputs")


class Equations(ctypes.Structure):
    """``struct equations``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *whole("n_q n_u n_z n_r n_p n_y n_phi m rows n_independent size u_dot multipliers largest"),
        *pointers("independent dependent typical"),
        *[(name, Plan) for name in PLANS],
        *pointers("mechanism"),
        *whole("singular"),
        *pointers("memory v results rates numbers a b vector"),
        ("constraints_turned", Orthogonal),
        ("least_norm", Orthogonal),
    ]


class Motion(ctypes.Structure):
    """``struct motion``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = pointers("u x_dot power kinetic outputs residual")


class Journey(ctypes.Structure):
    """``struct journey``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *pointers("tableau time"),
        *whole("points"),
        *pointers("inputs parameters scales"),
        ("tolerance", ctypes.c_double),
        ("relative", ctypes.c_double),
        *whole("budget parts projected"),
        ("step", ctypes.c_double),
        *whole("spent"),
        ("stuck", ctypes.c_double),
    ]


class Group(ctypes.Structure):
    """``struct group``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*pointers("function places"), *whole("count first")]


class Groups(ctypes.Structure):
    """``struct groups``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*pointers("groups"), *whole("count")]


class Terms(ctypes.Structure):
    """``struct terms``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("frame numbers speeds columns begin")]


class PathSums(ctypes.Structure):
    """``struct path_sums``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("order above first terms")]


class Pieces(ctypes.Structure):
    """``struct pieces``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("node frame vector factor sign")]


class Pathways(ctypes.Structure):
    """``struct pathways``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("first points length force")]


class SensedVectors(ctypes.Structure):
    """``struct sensed_vectors``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("kind node place")]


class Entries(ctypes.Structure):
    """``struct entries``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("row column place")]


class Composites(ctypes.Structure):
    """``struct composites``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("begin piece path_begin path")]


class Rigid(ctypes.Structure):
    """``struct rigid``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = pointers("node turns composite point frame rows_begin rows")


class Places(ctypes.Structure):
    """``struct places``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [*whole("count"), *pointers("node link path_begin path")]


class Articulated(ctypes.Structure):
    """``struct articulated``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *whole("count"),
        *pointers("order parent path_begin path sign"),
        ("bodies", Places),
        ("points", Places),
        ("frames", Places),
    ]


class Mechanism(ctypes.Structure):
    """``struct mechanism``."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *whole("n_v n_w n_q n_u n_all n_z m"),
        *pointers("w"),
        ("motion", Groups),
        ("acting", Groups),
        *whole("n_gathered"),
        *pointers("gathered"),
        *whole("n_frames"),
        *pointers("frame_parent rotation"),
        ("frame_terms", Terms),
        ("turning", PathSums),
        ("point_terms", Terms),
        ("moving", PathSums),
        ("place_terms", Terms),
        ("places_of_points", PathSums),
        *pointers("given"),
        *whole("n_bodies"),
        *pointers("masscenter body_frame mass inertia"),
        ("forces", Pieces),
        ("torques", Pieces),
        ("pathways", Pathways),
        ("sensed", SensedVectors),
        *whole("n_sights"),
        *pointers("sight_kind sight_node sight_slot"),
        *whole("n_potential"),
        *pointers("potential"),
        ("K", Entries),
        ("A", Entries),
        *pointers("k0 b gamma z_dot"),
        *pointers("frames_begin frames_of points_begin points_of bodies_begin bodies_of"),
        ("composites", Composites),
        ("rigid", Rigid),
        ("articulated", Articulated),
        *pointers("memory g R omega alpha position velocity acceleration F T Q"),
        *pointers("frame_numbers point_numbers place_numbers inertia_N composite links"),
    ]
