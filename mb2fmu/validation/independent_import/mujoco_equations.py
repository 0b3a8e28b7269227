"""An independent import of an MJCF file, by MuJoCo where it is installed: M and f of M u' = f, in the speeds of mb2fmu.

The speeds of mb2fmu differ from MuJoCo's where a body floats (its velocity is along its own axes here, along the
world's there), and where a joint follows another one or is held (MuJoCo has soft constraints for that). With MuJoCo's v
= S u and v' = S u' + s0,

    Sᵀ M S u' = Sᵀ (f − M s0)
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mb2fmu.validation.independent_import.independent_urdf_equations import (
    Array,
    LinkMotion,
    Pose,
    RobotEvaluationPoint,
)

_FREE_JOINT, _BALL_JOINT = 0, 1
_JOINT_EQUALITY = 2  # kind of an equality
_JOINT_OBJECT, _BODY_OBJECT, _SITE_OBJECT = 3, 1, 6  # of joints, bodies, sites, among MuJoCo's kinds of objects
_CONNECT_EQUALITY, _WELD_EQUALITY = 0, 1  # kinds of equalities
_MESH_AXES_ACCURACY = 1e-6
"""Relative, of inertias of bodies that meshes give their mass: MuJoCo finds a mesh's principal axes to about 1e-7."""
_DISABLED_FEATURES = ("mjDSBL_CONTACT", "mjDSBL_LIMIT", "mjDSBL_FRICTIONLOSS", "mjDSBL_EQUALITY")


def is_mujoco_installed() -> bool:
    """Return whether MuJoCo is installed."""
    return importlib.util.find_spec("mujoco") is not None


def read_mujoco_joint_values(path: Path, names: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """Return hinge or slide → damping, lower and upper bound (rad or m, infinite where there is none) as MuJoCo has it.

    Args:
        path: Of the file.
        names: Of its joints that move, in the order of the file, as the model calls them.
    """
    mj = importlib.import_module("mujoco")
    try:
        model = _load_mujoco_model(mj, path)
    except ValueError:  # who compares x' says so
        return {}
    values_by_joint = {}
    for j, name in enumerate(_list_joint_names(mj, model, names)):
        if int(model.jnt_type[j]) in {_FREE_JOINT, _BALL_JOINT}:
            continue
        lower, upper = map(float, model.jnt_range[j]) if model.jnt_limited[j] else (-np.inf, np.inf)
        values_by_joint[name] = float(model.dof_damping[model.jnt_dofadr[j]]), lower, upper
    return values_by_joint


def _list_joint_names(mj: Any, model: Any, names: Sequence[str]) -> list[str]:
    """Return the names of all joints; those without one in the file have the model's."""
    joint_names = [mj.mj_id2name(model, _JOINT_OBJECT, j) or "" for j in range(model.njnt)]
    names_of_nameless = iter([name for name in names if name not in joint_names])
    return [name or next(names_of_nameless) for name in joint_names]


def _load_mujoco_model(mj: Any, path: Path) -> Any:
    """Return MuJoCo's model; the axes of free bodies are the file's, which ``align`` would turn."""
    with warnings.catch_warnings():  # of words that MuJoCo will give up
        warnings.simplefilter("ignore")
        return _read_mujoco_specification(mj, path).compile()


def _read_mujoco_specification(mj: Any, path: Path) -> Any:
    """Return MuJoCo's description of the file, without ``align``."""
    spec = mj.MjSpec.from_file(str(path))
    spec.compiler.alignfree = False
    for joint in spec.joints:
        joint.align = mj.mjtAlignFree.mjALIGNFREE_FALSE
    return spec


def _has_mass_from_meshes(mj: Any, spec: Any) -> bool:
    """Return whether a mesh gives a body that is not the world its mass."""
    first, last = spec.compiler.inertiagrouprange
    always = int(spec.compiler.inertiafromgeom) == int(mj.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    return any(
        geom.type == mj.mjtGeom.mjGEOM_MESH
        and geom.parent.name != "world"
        and geom.mass != 0.0  # NaN: by its density
        and geom.density != 0.0
        and first <= geom.group <= last
        and (always or not geom.parent.explicitinertial)
        for geom in spec.geoms
    )


@dataclass(slots=True)
class MujocoEquations:
    """An MJCF file as MuJoCo reads it.

    Args:
        path: Of the file.
        names: Of its joints that move or are held, in the order of the file, as the model calls them.
        actuators: Their names, in the order of the file; without any they do not act.
        locked: Joint → position at which it is held.
        free: True: joints that follow others move by themselves.
        prescribed: Joints whose motion is given.

    Raises:
        ValueError: If MuJoCo does not load the file.
    """

    path: Path
    names: Sequence[str]
    actuators: Sequence[str] = ()
    locked: Mapping[str, float] = field(default_factory=dict)
    free: bool = False
    prescribed: Sequence[str] = ()
    column: dict[str, int] = field(default_factory=dict)
    size: int = 0
    gravity: Array = field(default_factory=lambda: np.zeros(3))
    accuracy: float = 0.0  # relative, of inertias, where MuJoCo has them less exact than round-off
    _mj: Any = None
    _model: Any = None
    _data: Any = None
    _joint: dict[str, int] = field(default_factory=dict)
    _leaders: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    _leader: dict[int, str] = field(default_factory=dict)  # degree of freedom → joint that moves it

    def __post_init__(self) -> None:
        self._mj = importlib.import_module("mujoco")
        with warnings.catch_warnings():  # of words that MuJoCo will give up
            warnings.simplefilter("ignore")
            spec = _read_mujoco_specification(self._mj, self.path)
            self._model = model = spec.compile()
        self.accuracy = _MESH_AXES_ACCURACY if _has_mass_from_meshes(self._mj, spec) else 0.0
        is_weightless = model.opt.disableflags & int(self._mj.mjtDisableBit.mjDSBL_GRAVITY)
        self.gravity = np.zeros(3) if is_weightless else np.array(model.opt.gravity)
        for flag in (*_DISABLED_FEATURES, *(() if self.actuators else ("mjDSBL_ACTUATION",))):
            model.opt.disableflags |= int(getattr(self._mj.mjtDisableBit, flag))
        self._data = self._mj.MjData(model)
        self._joint = {name: j for j, name in enumerate(_list_joint_names(self._mj, model, self.names))}
        self._read_equalities()
        for name, j in self._joint.items():
            if j not in self._leaders and name not in self.locked and name not in self.prescribed:
                self.column[name] = self.size
                self.size += {_FREE_JOINT: 6, _BALL_JOINT: 3}.get(int(model.jnt_type[j]), 1)

    def _read_equalities(self) -> None:
        """Read couplings of joints: follower → (leader, factor, offset); -1: it is held at the offset."""
        m = self._model
        for k in range(m.neq):
            if int(m.eq_type[k]) != _JOINT_EQUALITY or not m.eq_active0[k]:
                continue
            follower, leader = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
            if self.free and leader >= 0:
                continue
            a0, a1 = m.eq_data[k][:2]
            zero = m.qpos0[m.jnt_qposadr]
            if leader < 0:
                self._leaders[follower] = (-1, 0.0, float(zero[follower] + a0))
            else:
                self._leaders[follower] = (leader, float(a1), float(zero[follower] + a0 - a1 * zero[leader]))

    def equations(self, state: RobotEvaluationPoint) -> tuple[Array, Array]:
        """Return M, shape (n, n), and f, shape (n,), of M u' = f; rows by :attr:`column`."""
        m, d, mj = self._model, self._data, self._mj
        m.opt.gravity[:] = state.gravity
        S, s0 = self._set_state(state)
        if self.actuators:
            d.ctrl[:] = [state.control[name] for name in self.actuators]
        d.qfrc_applied[:] = 0.0
        for name, effort in state.effort.items():
            d.qfrc_applied[m.jnt_dofadr[self._joint[name]]] = effort
        for name, j in self._joint.items():
            count = {_FREE_JOINT: 6, _BALL_JOINT: 3}.get(int(m.jnt_type[j]), 1)
            m.dof_damping[m.jnt_dofadr[j] : m.jnt_dofadr[j] + count] = state.damping.get(name, 0.0)
        mj.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mj.mj_fullM(m, d, M)
        f = d.qfrc_passive + d.qfrc_actuator + d.qfrc_applied - d.qfrc_bias
        for dof, leader in self._leader.items():
            f[dof] -= state.friction.get(leader, 0.0) * m.dof_frictionloss[dof] * np.sign(d.qvel[dof])
        return S.T @ M @ S, S.T @ (f - M @ s0)

    def compute_motions(self, links: Iterable[str], state: RobotEvaluationPoint) -> dict[str, LinkMotion]:
        """Return the motion of bodies and sites by MuJoCo's Jacobians; positions are those of ``state``."""
        m, d, mj = self._model, self._data, self._mj
        S, s0 = self._set_state(state)
        mj.mj_forward(m, d)
        motions = {}
        for name in links:
            body = mj.mj_name2id(m, _BODY_OBJECT, name)
            site = mj.mj_name2id(m, _SITE_OBJECT, name) if body < 0 else -1
            if name == "world" or body >= 0:
                body, p, R = max(body, 0), d.xpos[max(body, 0)], d.xmat[max(body, 0)]
            else:
                body, p, R = int(m.site_bodyid[site]), d.site_xpos[site], d.site_xmat[site]
            J, K = (np.zeros((2, 3, m.nv)) for _ in range(2))
            mj.mj_jac(m, d, J[0], J[1], p, body)
            mj.mj_jacDot(m, d, K[0], K[1], p, body)
            v, w = J @ d.qvel
            a, alpha = K @ d.qvel + J @ s0
            motions[name] = LinkMotion(R.reshape(3, 3).copy(), p.copy(), w, v, alpha, a, J[1] @ S, J[0] @ S)
        return motions

    @property
    def loop_closures(self) -> list[tuple[str, tuple[str, str], tuple[Pose, Pose]]]:
        """Loops of the file: kind, both bodies or sites, and their meeting points in each."""
        m, mj, loops = self._model, self._mj, []
        for k in range(m.neq):
            kind, data = int(m.eq_type[k]), m.eq_data[k]
            if kind not in {_CONNECT_EQUALITY, _WELD_EQUALITY} or not m.eq_active0[k]:
                continue
            object_type = int(m.eq_objtype[k])
            first, second = (str(mj.mj_id2name(m, object_type, int(i))) for i in (m.eq_obj1id[k], m.eq_obj2id[k]))
            rotation, first_place, second_place = np.eye(3), data[:3].copy(), data[3:6].copy()
            if kind == _WELD_EQUALITY:
                first_place, second_place = second_place, first_place
                rotation = _rotation_matrix(data[6:10])
            if object_type == _SITE_OBJECT:
                rotation, first_place, second_place = np.eye(3), np.zeros(3), np.zeros(3)
            loop_kind = "point" if kind == _CONNECT_EQUALITY else "weld"
            loops.append((loop_kind, (first, second), ((rotation, first_place), (np.eye(3), second_place))))
        return loops

    def has_frame(self, name: str) -> bool:
        """Return whether there is a body or site of that name."""
        return any(self._mj.mj_name2id(self._model, kind, name) >= 0 for kind in (_BODY_OBJECT, _SITE_OBJECT))

    def _set_state(self, state: RobotEvaluationPoint) -> tuple[Array, Array]:
        """Set positions and speeds; return S and s0 of these."""
        m, d = self._model, self._data
        S, s0, names = np.zeros((m.nv, self.size)), np.zeros(m.nv), {j: name for name, j in self._joint.items()}
        for name, j in self._joint.items():
            at_q, at_v, kind = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]), int(m.jnt_type[j])
            column = self.column.get(name)
            if kind == _FREE_JOINT and column is not None:
                q, u = np.array(state.q[name]), np.array(state.u[name])
                R = _rotation_matrix(q[3:])
                d.qpos[at_q : at_q + 7], d.qvel[at_v : at_v + 6] = q, np.concatenate([R @ u[:3], u[3:]])
                S[at_v : at_v + 3, column : column + 3] = R
                S[at_v + 3 : at_v + 6, column + 3 : column + 6] = np.eye(3)
                s0[at_v : at_v + 3] = np.cross(R @ u[3:], R @ u[:3])
            elif kind == _BALL_JOINT and column is not None:
                d.qpos[at_q : at_q + 4], d.qvel[at_v : at_v + 3] = state.q[name], state.u[name]
                S[at_v : at_v + 3, column : column + 3] = np.eye(3)
            else:
                self._set_joint_state(j, state, names, S, s0)
        return S, s0

    def _set_joint_state(
        self, j: int, state: RobotEvaluationPoint, names: Mapping[int, str], S: Array, s0: Array
    ) -> None:
        """Place one hinge or slide, which may follow another, be held, or be prescribed."""
        m, d = self._model, self._data
        at_q, at_v = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
        factor, offset, leader = 1.0, 0.0, j
        while leader >= 0 and leader in self._leaders and names[leader] not in self.locked:
            leader, own_factor, own_offset = self._leaders[leader]
            offset, factor = offset + factor * own_offset, factor * own_factor
        name = names.get(leader, "")
        position, speed = self.locked.get(name, 0.0), 0.0
        if leader >= 0 and name not in self.locked:
            position, speed = state.q[name][0], state.u[name][0]
            s0[at_v] = factor * state.acceleration.get(name, 0.0)
            self._leader[at_v] = name
            if name in self.column:
                S[at_v, self.column[name]] = factor
        d.qpos[at_q], d.qvel[at_v] = factor * position + offset, factor * speed


def _rotation_matrix(quaternion: Array) -> Array:
    """Return the 3 × 3 rotation matrix of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation: Array = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return rotation
