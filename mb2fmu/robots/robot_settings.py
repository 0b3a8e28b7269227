"""``RobotSettings``: settings that a robot file cannot contain, from its side file and from arguments."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.description.robot_description import LoopConnection
from mb2fmu.robots.flexible_links.flexible_link_settings import FlexibleLinkSetting, read_flexible_links

BaseKind = Literal["fixed", "floating", "planar"]
LimitHandling = Literal["stop", "ignore"]
FrictionHandling = Literal["stick", "ignore"]
RobotRole = Literal["plant", "inverse-dynamics"]
InertiaHandling = Literal["refuse", "repair", "keep"]
MimicHandling = Literal["couple", "free"]
JointSpaceWord = Literal["inverse-dynamics", "mass-matrix", "gravity-torques", "jacobian"]
LoadWord = Literal["force", "torque"]
OutputWord = Literal["position", "orientation", "velocity", "angular_velocity", "acceleration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedFrameOutput:
    """Requested outputs of one frame.

    Attributes:
        frame: Name of a link.
        of: What, in the ground's axes.
        offset: Of the point from the link's origin, m, in the link's axes.
        name: Of the outputs; that of the link, unless given.
    """

    frame: str
    of: tuple[OutputWord, ...] = ("position", "orientation")
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotLoadSetting:
    """A force at a point of a link, or a torque on it, whose components are inputs.

    Attributes:
        frame: Name of a link.
        of: Which of both.
        offset: Of the point where the force acts from the link's origin, m, in the link's axes.
        axes: Link along whose axes the components are; empty: those of the ground.
        name: Of the inputs; that of the link, unless given.
    """

    frame: str
    of: tuple[LoadWord, ...] = ("force",)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axes: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotLoopSetting:
    """Two links that are connected in addition to the tree.

    Attributes:
        frames: Names of two links.
        by: ``point``, ``hinge`` or ``weld``.
        offset: Of the point from the first link's origin, m, in its axes.
        other_offset: Of the point from the second link's origin, m, in its axes.
        axis: Of a hinge, in the first link's axes.
        other_axis: Of a hinge, in the second link's axes; as ``axis``, unless given.
        name: Of the loop; that of the links, unless given.
    """

    frames: tuple[str, str]
    by: LoopConnection = "point"
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    other_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    other_axis: tuple[float, float, float] | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotSettings:
    """Settings that a robot file cannot contain.

    Attributes:
        name: Of the model; that of the robot, unless given.
        role: Of the FMU. ``plant``: efforts move the robot; ``inverse-dynamics``: position, speed and acceleration of
            every joint are inputs, and the efforts that this takes are outputs.
        base: How the root link stands: ``fixed``, ``floating`` (six degrees of freedom, by a quaternion), ``planar``.
        gravity: Acceleration in the root's frame at rest, m/s²; None: as the file says, or 9.81 against z.
            ``model_from_robot.py`` makes the parameter ``gravity`` of it.
        inputs: Joints whose effort is an input; None: every joint that something may drive.
        locked: Joint → position at which it is held, rad or m.
        prescribed: Joints whose position, speed and acceleration are inputs.
        start: Joint → position at the start, rad or m.
        speeds: Joint → speed at the start, rad/s or m/s.
        limits: ``ignore``: ranges are declared as bounds of the variables; ``stop``: joints have hard stops; None: as
            ``ignore``, and reported.
        friction: ``stick``: dry friction of joints acts; ``ignore``, and None: it is left out, and reported.
        inertia: Of inertias that no body can have. ``repair``: replaced by the nearest possible ones, each reported;
            ``keep``: taken as they are, each reported.
        mimic: ``free``: joints that mimic another one move by themselves.
        packages: Package → folder, for ``package://`` and ``model://`` in names of meshes and included models.
        outputs: What the FMU reports of frames.
        reactions: Joints whose force and torque on what they carry are outputs.
        quantities: Of the equations, as outputs: ``inverse-dynamics``, ``mass-matrix``, ``gravity-torques``,
            ``jacobian:LINK``.
        loads: Forces and torques on links, whose components are inputs.
        loops: Links that are connected beside the tree.
        flexible: Link that bends → its elastic data, in place of mass and inertia of the file.
        arrays: True: FMUs of FMI 3.0 have ``q``, ``v``, ``acceleration``, ``tau``, poses and the equations as arrays.
        energy: True: kinetic, potential and total energy are outputs.
        stop: Of the default experiment, s; None: 2, or less where the robot falls from its start.
        step: Communication step of the default experiment, s.
        excitation: Size of the accelerations that the default experiment's efforts aim at, rad/s² or m/s²; 0: none.
    """

    name: str = ""
    role: RobotRole = "plant"
    base: BaseKind = "fixed"
    gravity: tuple[float, float, float] | None = None
    inputs: tuple[str, ...] | None = None
    locked: Mapping[str, float] = field(default_factory=dict)
    prescribed: tuple[str, ...] = ()
    start: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    limits: LimitHandling | None = None
    friction: FrictionHandling | None = None
    inertia: InertiaHandling = "refuse"
    mimic: MimicHandling = "couple"
    packages: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[RequestedFrameOutput, ...] = ()
    reactions: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    loads: tuple[RobotLoadSetting, ...] = ()
    loops: tuple[RobotLoopSetting, ...] = ()
    flexible: Mapping[str, FlexibleLinkSetting] = field(default_factory=dict)
    arrays: bool = False
    energy: bool = False
    stop: float | None = None
    step: float = 0.01
    excitation: float = 1.0


def parse_robot_settings(
    table: Mapping[str, Any], where: str, before: RobotSettings | None = None
) -> tuple[RobotSettings, list[Fault]]:
    """Return the settings with some of them replaced, and every setting that there is not or that has a wrong value.

    Args:
        table: Name → value, as TOML has it; texts are converted, so that arguments of a command line do, too.
        where: For messages: the side file, or ``argument``.
        before: What is replaced; the defaults if None.
    """
    known = {each.name for each in fields(RobotSettings)}
    faults: list[Fault] = []
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            faults.append(Fault(f"there is no setting {key!r}", where, remedy))
            continue
        try:
            found[key] = _SETTING_READERS[key](_parse_toml_text(value))
        except (ValueError, TypeError) as error:
            faults.append(
                Fault(f"the setting {key} = {value!r} cannot be: {error}", where, "see docs/reference/robots.md")
            )
    return replace(before or RobotSettings(), **found), faults


def read_robot_settings_file(content: bytes, path: Path) -> tuple[RobotSettings, list[Fault]]:
    """Return the settings of a side file, and its faults.

    Raises:
        ModelError: If it is no TOML.
    """
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError("the robot's settings cannot be read:", [Fault(str(error), path.name)]) from None
    return parse_robot_settings(table, path.name)


def _parse_toml_text(value: Any) -> Any:
    """Return what a text in braces or brackets says as TOML, so that a side file's tables go on a command line, too."""
    if not isinstance(value, str) or value.strip()[:1] not in {"{", "["}:
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f'it is no TOML ({error}); write {{joint=0.1}}, ["joint"], or joint=0.1,other=0.2') from None


def _make_choice_reader(kind: Any) -> Callable[[Any], Any]:
    """Return a reader that takes one word of a Literal."""

    def read(value: Any) -> Any:
        """Return the value if it is one of the allowed words."""
        words = get_args(kind)
        if value not in words:
            raise ValueError(f"it is one of {', '.join(words)}")
        return value

    return read


def _read_text(value: Any) -> str:
    """Return a text; raise at anything else."""
    if not isinstance(value, str):
        raise TypeError("it is a text")
    return value


def _read_number(value: Any) -> float:
    """Return a finite number, also from text; raise at truth values."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is no finite number")
    return found


def _read_positive_number(value: Any) -> float:
    """Return a number above zero."""
    found = _read_number(value)
    if found <= 0:
        raise ValueError("it is a number > 0")
    return found


def _read_boolean(value: Any) -> bool:
    """Return true or false, also from yes, no, 1, 0."""
    if isinstance(value, bool):
        return value
    if str(value).lower() in {"true", "yes", "1"}:
        return True
    if str(value).lower() in {"false", "no", "0"}:
        return False
    raise ValueError("it is true or false")


def _read_three_numbers(value: Any) -> tuple[float, float, float]:
    """Return three numbers, from a sequence or from text separated by spaces or commas."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else list(value)
    if len(parts) != 3:
        raise ValueError("it is three numbers")
    x, y, z = map(_read_number, parts)
    return (x, y, z)


def _read_names(value: Any) -> tuple[str, ...]:
    """Return names, from a sequence or from text separated by commas."""
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)
    return tuple(_read_text(part) for part in parts if part)


def _read_driven_joints(value: Any) -> tuple[str, ...] | None:
    """Return the joints that are driven; None means all that the file drives."""
    return None if value == "all" else () if value == "none" else _read_names(value)


def _read_number_table(value: Any) -> dict[str, float]:
    """Return a table of numbers; as a text ``name=1.0,other=2``."""
    return {name: _read_number(number) for name, number in _read_pairs(value).items()}


def _read_pairs(value: Any) -> dict[str, Any]:
    """Return name=value pairs, from a table or from text separated by commas."""
    if not isinstance(value, str):
        return dict(value)
    parts = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(sign for _, sign, _ in parts):
        raise ValueError("write name=value, separated by commas")
    return {name.strip(): text.strip() for name, _, text in parts}


def _read_outputs(value: Any) -> tuple[RequestedFrameOutput, ...]:
    """Return the outputs requested for links, from names or tables."""
    if isinstance(value, str):
        return tuple(RequestedFrameOutput(frame=name) for name in _read_names(value))
    found = []
    for item in value:
        if isinstance(item, str):
            found.append(RequestedFrameOutput(frame=item))
            continue
        strange = set(item) - {each.name for each in fields(RequestedFrameOutput)}
        if strange or "frame" not in item:
            raise ValueError(
                f"an output has frame, of, offset, name; not {', '.join(sorted(strange)) or 'without frame'}"
            )
        words = item.get("of", RequestedFrameOutput(frame="").of)
        words = tuple(_make_choice_reader(OutputWord)(word) for word in ([words] if isinstance(words, str) else words))
        offset = _read_three_numbers(item.get("offset", (0.0, 0.0, 0.0)))
        found.append(
            RequestedFrameOutput(
                frame=_read_text(item["frame"]), of=words, offset=offset, name=_read_text(item.get("name", ""))
            )
        )
    return tuple(found)


def _read_quantities(value: Any) -> tuple[str, ...]:
    """Return the quantities requested for the whole robot; a Jacobian names its link."""
    for word in (found := _read_names(value)):
        name, _, frame = word.partition(":")
        _make_choice_reader(JointSpaceWord)(name)
        if (name == "jacobian") != bool(frame):
            raise ValueError("a Jacobian is that of a link: jacobian:LINK; the others are of the whole robot")
    return found


def _read_loads(value: Any) -> tuple[RobotLoadSetting, ...]:
    """Return the loads of a side file, from names of links or tables."""
    if isinstance(value, str):
        return tuple(RobotLoadSetting(frame=name) for name in _read_names(value))
    found = []
    for item in value:
        table = {"frame": item} if isinstance(item, str) else item
        strange = set(table) - {each.name for each in fields(RobotLoadSetting)}
        if strange or "frame" not in table:
            odd = ", ".join(sorted(strange)) or "without frame"
            raise ValueError(f"a load has frame, of, offset, axes, name; not {odd}")
        words = table.get("of", RobotLoadSetting(frame="").of)
        texts = {key: _read_text(table[key]) for key in ("frame", "axes", "name") if key in table}
        of = tuple(
            dict.fromkeys(_make_choice_reader(LoadWord)(w) for w in ([words] if isinstance(words, str) else words))
        )
        found.append(RobotLoadSetting(of=of, offset=_read_three_numbers(table.get("offset", (0.0, 0.0, 0.0))), **texts))
    return tuple(found)


def _read_loops(value: Any) -> tuple[RobotLoopSetting, ...]:
    """Return the closed loops of a side file."""
    if isinstance(value, str):
        raise TypeError("loops stand in the side file: [[loops]]")
    found = []
    for item in value:
        strange = set(item) - {each.name for each in fields(RobotLoopSetting)}
        if strange or len(item.get("frames", ())) != 2:
            words = ", ".join(each.name for each in fields(RobotLoopSetting))
            raise ValueError(f"a loop has frames = [two links], and may have {words}")
        first, second = map(_read_text, item["frames"])
        vectors = {
            key: _read_three_numbers(item[key])
            for key in ("offset", "other_offset", "axis", "other_axis")
            if key in item
        }
        if any(not any(vectors.get(key, (1.0,))) for key in ("axis", "other_axis")):
            raise ValueError("an axis is a direction, not zero")
        by = _make_choice_reader(LoopConnection)(item.get("by", "point"))
        found.append(RobotLoopSetting(frames=(first, second), by=by, name=_read_text(item.get("name", "")), **vectors))
    return tuple(found)


_SETTING_READERS: dict[str, Callable[[Any], Any]] = {
    "name": _read_text,
    "role": _make_choice_reader(RobotRole),
    "base": _make_choice_reader(BaseKind),
    "gravity": _read_three_numbers,
    "inputs": _read_driven_joints,
    "locked": _read_number_table,
    "prescribed": _read_names,
    "start": _read_number_table,
    "speeds": _read_number_table,
    "limits": _make_choice_reader(LimitHandling),
    "friction": _make_choice_reader(FrictionHandling),
    "inertia": _make_choice_reader(InertiaHandling),
    "mimic": _make_choice_reader(MimicHandling),
    "packages": lambda value: {name: _read_text(folder) for name, folder in _read_pairs(value).items()},
    "outputs": _read_outputs,
    "reactions": _read_names,
    "quantities": _read_quantities,
    "loads": _read_loads,
    "loops": _read_loops,
    "flexible": read_flexible_links,
    "arrays": _read_boolean,
    "energy": _read_boolean,
    "stop": _read_positive_number,
    "step": _read_positive_number,
    "excitation": _read_number,
}
