"""The animation as HTML: an element of another page, or a page of its own; nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mb2fmu.visualization import three_js
from mb2fmu.visualization.scene.contact_overlay import ContactOverlay, form_contact_overlay
from mb2fmu.visualization.scene.drawing_records import Drawing, PoseAnchorPoint, PoseSeries
from mb2fmu.visualization.scene.scene_pose_trajectories import PlotSignals
from mb2fmu.visualization.scene.triangle_meshes import decimate_meshes_to_size, describe_mesh_decimation
from mb2fmu.visualization.still_picture import render_still_picture

FRAMES_PER_SECOND = 60
FEWEST_FRAMES, MOST_FRAMES = 240, 4000
MAX_PLOTTED_VARIABLES = 24
"""Variables that a page offers for its plot."""

_STROBE_INSTANTS = 6  # instants in the picture for print
_MAX_STROBED_TRIANGLES = 8_000
"""Triangles of meshes up to which the still picture has earlier instants: each draws all of them once more."""
_ELEMENT_CHARACTERS, _CHARACTERS_PER_TIME = 4_000, 12  # characters: of the element around the data, and of one time


@dataclass(frozen=True, slots=True)
class AnimationPageElement:
    """The animation as an element of a page.

    Attributes:
        style: Rules for the page's style sheet.
        body: Where it is to stand; the data and scripts are in it.
        script_hashes: SHA-256 of every script that runs, in base64, for the page's content security policy.
        runs: A module of WebAssembly runs in it, which the policy has to allow.
    """

    style: Markup
    body: Markup
    script_hashes: tuple[str, ...]
    runs: bool = False


def render_animation_element(
    drawing: Drawing,
    signals: PlotSignals | None = None,
    *,
    shown: tuple[str, ...] = (),
    limit: int | None = None,
    autoplay: bool = False,
    live: str = "",
    still: bytes | None = None,
) -> AnimationPageElement:
    """Return the animation as part of a page; there can be one in a page.

    Args:
        drawing: What moves.
        signals: For the plot, over the drawing's times; those ``shown`` and the first others can be chosen, up to
            ``MAX_PLOTTED_VARIABLES``.
        shown: Which of them are shown at first; none named: the first three.
        limit: Most characters of the whole element; triangles of meshes and frames are left out until it fits.
        autoplay: Begin to move at once, unless the reader's system requests calm.
        live: An FMU that runs in the page, as :func:`format_script_safe_json` writes it; empty: none. Its room is not
            in ``limit``.
        still: What :func:`render_print_picture` gave for ``drawing``; None: it is rendered.

    Returns:
        The same for the same arguments.
    """
    environment = _template_environment()
    script = _read_viewer_script()
    library = three_js.load_three_js()
    touches = form_contact_overlay(drawing, signals)
    signals = _choose_plotted_signals(signals, shown) if signals else None
    picture = render_print_picture(drawing) if still is None else still
    room = (
        None
        if limit is None
        else limit - len(script) - len(library.compressed_base64) - len(picture) - _ELEMENT_CHARACTERS
    )
    given = sum(len(mesh.faces) for mesh in drawing.meshes)
    if room is not None:
        drawing = replace(drawing, meshes=decimate_meshes_to_size(drawing.meshes, room // 2))
    kept = sum(len(mesh.faces) for mesh in drawing.meshes)
    data = _form_viewer_data(drawing, signals, touches, shown, room)
    body = environment.get_template("animation.html.jinja").render(
        name=drawing.name,
        data=Markup(_format_script_safe_json(data)),  # noqa: S704 (no "<" is left in it)
        library=Markup(library.compressed_base64),  # noqa: S704 (base64)
        script=Markup(script),  # noqa: S704 (our own file)
        still=Markup(picture.decode()),  # noqa: S704 (every text in it went through escape)
        live=Markup(live),  # noqa: S704 (no "<" is left in it)
        overlay=data["apart"] is not None,
        overlay_name=data["overlayName"],
        autoplay=autoplay,
        arrows=bool(drawing.arrows or (touches and touches.pushed)),
        touches=touches is not None,
        traces=bool(drawing.traces),
        plot=bool(data["signals"]["names"]),
        moves=len(drawing.poses.time) > 1,
        notes=(*drawing.notes, *([describe_mesh_decimation(kept, given, "this page")] if kept < given else [])),
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = Markup(_read_package_file("viewer.css").strip())  # noqa: S704 (our own file)
    return AnimationPageElement(style, Markup(body), (digest, library.digest), runs=bool(live))  # noqa: S704


def render_print_picture(drawing: Drawing) -> bytes:
    """Return the picture (SVG) in place of the animation on paper: the last instant, with earlier ones pale behind."""
    light = sum(len(mesh.faces) for mesh in drawing.meshes) <= _MAX_STROBED_TRIANGLES and len(drawing.poses.time) > 1
    return render_still_picture(drawing, float(drawing.poses.time[-1]), strobe=_STROBE_INSTANTS if light else 0)


def render_animation_page(
    drawing: Drawing,
    signals: PlotSignals | None = None,
    *,
    shown: tuple[str, ...] = (),
    description: str = "",
    limit: int | None = None,
    live: str = "",
) -> bytes:
    """Return a self-contained page with nothing but the animation; arguments as of :func:`render_animation_element`."""
    part = render_animation_element(drawing, signals, shown=shown, limit=limit, autoplay=True, live=live)
    text = (
        _template_environment()
        .get_template("page.html.jinja")
        .render(name=drawing.name, description=description, part=part, licence=three_js.THREE_JS_LICENCE)
    )
    return text.encode()


def choose_animation_frames(time: npt.NDArray[np.float64], most: int = MOST_FRAMES) -> npt.NDArray[np.intp]:
    """Return which of many times are shown: as many as a screen shows, at most ``most``, first and last among them.

    What lasts less than four seconds is watched more slowly than it is: it has 240.
    """
    shown = int(np.ceil((time[-1] - time[0]) * FRAMES_PER_SECOND)) + 1
    wanted = max(2, min(most, max(FEWEST_FRAMES, shown)))
    if len(time) <= wanted:
        return np.arange(len(time))
    return np.unique(np.rint(np.linspace(0, len(time) - 1, wanted)).astype(np.intp))


def _form_viewer_data(
    drawing: Drawing,
    signals: PlotSignals | None,
    touches: ContactOverlay | None,
    shown: tuple[str, ...],
    limit: int | None,
) -> dict[str, Any]:
    """Return the data that ``viewer.js`` reads, thinned out until they fit."""
    rows = choose_animation_frames(drawing.poses.time)
    moving = _encode_time_dependent_data(drawing, signals, touches, rows)
    parts = _form_static_data(drawing)
    if limit is not None:
        limit -= len(_format_script_safe_json(parts)) + sum(
            len(_format_script_safe_json(part["ranges"])) for part in moving.values() if part
        )
    while (
        limit is not None
        and (size := _encoded_size(moving) + _CHARACTERS_PER_TIME * len(rows)) > limit
        and len(rows) > 2
    ):
        rows = choose_animation_frames(drawing.poses.time, max(2, int(len(rows) * max(limit, 0) / size * 0.97)))
        moving = _encode_time_dependent_data(drawing, signals, touches, rows)
    names = list(signals.names) if signals else []
    return {
        "name": drawing.name,
        "time": _round_times(drawing.poses.time[rows]),
        "count": len(rows),
        "poses": moving["poses"],
        "apart": moving["apart"],
        "overlayName": "reference",  # the pale second picture, in the legend
        "vectors": moving["vectors"],
        "touches": {**touches.parts, "values": moving["touches"]} if touches else None,
        "signals": {
            "names": names,
            "units": list(signals.units) if signals else [],
            "shown": [names.index(name) for name in shown if name in names] or list(range(min(3, len(names)))),
            "values": moving["signals"],
        },
        **parts,
    }


def _choose_plotted_signals(signals: PlotSignals, shown: tuple[str, ...]) -> PlotSignals:
    """Return at most ``MAX_PLOTTED_VARIABLES`` signals in order: the requested ones, then the first others."""
    wanted = sorted(range(len(signals.names)), key=lambda k: signals.names[k] not in shown)[:MAX_PLOTTED_VARIABLES]
    chosen = sorted(wanted)
    names, units = (tuple(group[k] for k in chosen) for group in (signals.names, signals.units))
    return PlotSignals(names, units, signals.values[:, chosen])


def _encoded_size(moving: dict[str, Any]) -> int:
    """Return the characters that the encoded arrays take."""
    return sum(len(part["data"]) for part in moving.values() if part)


def _encode_time_dependent_data(
    drawing: Drawing, signals: PlotSignals | None, touches: ContactOverlay | None, rows: npt.NDArray[np.intp]
) -> dict[str, Any]:
    """Return what changes with time, encoded: poses, reference's poses, vectors, touches and signals, at these rows."""
    poses = drawing.poses
    plotted = signals.values[rows] if signals else np.zeros((len(rows), 0))
    return {
        "poses": encode_animation_channels(_pose_channels(poses, rows)),
        "apart": encode_animation_channels(_overlay_differences(poses, drawing.reference_poses, rows))
        if drawing.reference_poses is not None
        else None,
        "vectors": encode_animation_channels(poses.vectors[rows].reshape(len(rows), -1)),
        "touches": encode_animation_channels(_replace_non_finite(touches.values[rows])) if touches else None,
        "signals": encode_animation_channels(_replace_non_finite(plotted)),
    }


def _pose_channels(poses: PoseSeries, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return per pose x, y, z, then w, x, y, z of its quaternion."""
    together = np.concatenate([poses.positions[rows], poses.turns[rows]], axis=2)
    return together.reshape(len(rows), -1)


def _overlay_differences(poses: PoseSeries, overlay: PoseSeries, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return how far the overlay's poses are from the others, channel by channel, with steps fine enough for that.

    A page can so magnify what would vanish among the steps of the poses themselves. A quaternion and its negative are
    one rotation: the overlay's is taken with the sign that is nearer.
    """
    sign = np.where(np.sum(poses.turns * overlay.turns, axis=2, keepdims=True) < 0, -1.0, 1.0)
    nearer = replace(overlay, turns=overlay.turns * sign)
    return _pose_channels(nearer, rows) - _pose_channels(poses, rows)


def _replace_non_finite(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values with 0 in place of inf and NaN, which the encoding cannot hold."""
    return np.where(np.isfinite(values), values, 0.0)


def _round_times(time: npt.NDArray[np.float64]) -> list[float]:
    """Return times in s with nine digits."""
    return [float(f"{t:.9g}") for t in time]


def _form_static_data(drawing: Drawing) -> dict[str, Any]:
    """Return the parts that do not move relative to their poses."""
    return {
        "solids": [
            {
                "kind": solid.kind,
                "sizes": _round_numbers(solid.sizes),
                **_form_anchor_record(solid.anchor),
                "turn": _round_numbers(solid.turn),
                "color": solid.color,
                "opacity": solid.opacity,
                "role": solid.role,
                "mesh": solid.mesh,
                **({"modes": list(solid.modes), "bend": solid.bend} if solid.modes else {}),
            }
            for solid in drawing.solids
        ],
        "lines": [
            {
                "anchors": [_form_anchor_record(anchor) for anchor in line.anchors],
                "color": line.color,
                "kind": line.kind,
            }
            for line in drawing.lines
        ],
        "traces": [{"name": t.name, **_form_anchor_record(t.anchor), "color": t.color} for t in drawing.traces],
        "arrows": [
            {"name": a.name, **_form_anchor_record(a.anchor), "vector": a.vector, "torque": a.torque, "color": a.color}
            for a in drawing.arrows
        ],
        "bodies": [{"name": body.name, "pose": body.pose} for body in drawing.bodies],
        "meshes": [mesh.to_record() for mesh in drawing.meshes],
        "unit": float(f"{drawing.unit:.6g}"),
        "centre": _round_numbers(drawing.centre),
        "span": _round_numbers(drawing.span),
        "up": _round_numbers(drawing.up),
        "toward": _round_numbers(drawing.view_direction),
        "flat": drawing.flat,
        "near": float(f"{drawing.near:.6g}"),
        "travels": drawing.travels_far,
        "floor": float(f"{drawing.floor:.6g}"),
        "arrowScales": _round_numbers(drawing.arrow_scales),
    }


def _form_anchor_record(anchor: PoseAnchorPoint) -> dict[str, Any]:
    """Return an anchor as the page reads it: number of the pose and place in it."""
    return {"pose": anchor.pose, "local": _round_numbers(anchor.local)}


def _round_numbers(values: Any) -> list[float]:
    """Return numbers with seven digits."""
    return [float(f"{float(value):.7g}") for value in values]


def _format_script_safe_json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _read_viewer_script() -> str:
    """Return the viewer without blank lines: pages that strip those must not change the hash in the policy."""
    text = "".join(_read_package_file(f"{part}.js") for part in ("viewer_arithmetic", "viewer_live", "viewer"))
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


@cache
def _template_environment() -> Environment:
    """Return the template environment: undefined names raise, text is escaped for HTML."""
    return Environment(
        loader=PackageLoader("mb2fmu.visualization"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def _read_package_file(name: str) -> str:
    """Return a packaged file as it stands, not rendered."""
    loader = _template_environment().loader
    assert loader is not None
    return loader.get_source(_template_environment(), name)[0]


Floats = npt.NDArray[np.float64]

QUANTIZATION_STEPS = 65535
_CONSTANT_TOLERANCE = 1e-9


def encode_animation_channels(values: Floats) -> dict[str, Any]:
    """Return channels as a record for JSON.

    Args:
        values: Shape (n_t, n_channels), finite.

    Returns:
        ``ranges``: per channel [value] or [smallest, largest]; ``data``: base64 of a zlib stream, for each channel that
        changes the low bytes of all differences, then the high bytes.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    scale = np.maximum(np.abs(low), np.abs(high))
    still = high - low <= _CONSTANT_TOLERANCE * np.maximum(scale, 1e-30)
    span = np.where(still, 1.0, high - low)
    steps = np.rint((values - low) / span * QUANTIZATION_STEPS)[:, ~still].astype(np.int64)
    differences = (np.diff(steps, axis=0, prepend=np.zeros((1, steps.shape[1]), dtype=np.int64)) & 0xFFFF).T
    content = b"".join(
        (row & 0xFF).astype(np.uint8).tobytes() + (row >> 8).astype(np.uint8).tobytes() for row in differences
    )
    ranges = [
        [_round_to_nine_digits(a)] if s else [_round_to_nine_digits(a), _round_to_nine_digits(b)]
        for a, b, s in zip(low, high, still, strict=True)
    ]
    return {"ranges": ranges, "data": base64.b64encode(zlib.compress(content, 9)).decode()}


def _round_to_nine_digits(value: float) -> float:
    """Return a number rounded to nine digits."""
    return float(f"{value:.9g}")
