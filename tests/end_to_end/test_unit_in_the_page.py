"""The FMU that runs in a page: the bits of the native FMU, in Chromium, with nothing imported."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night, marked

import mb2fmu
from mb2fmu import pipeline, pre, visualization
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache
from mb2fmu.pipeline.run_and_report.wasm_page_fmu import build_wasm_page_fmu
from mb2fmu.visualization.interactive_fmu import (
    MAX_MODULE_BYTES,
    form_interactive_fmu_record,
    format_script_safe_json,
    make_parameter_slider,
)

MODELS = Path(__file__).parents[2] / "models"
SMALL = 50_000
"""Bytes of a module, as promised for mechanisms of a few bodies."""
TEMPLATES = Path(visualization.__file__).parent / "templates"
SCRIPT = "".join((TEMPLATES / f"{part}.js").read_text() for part in ("viewer_arithmetic", "viewer_live"))
PAGE = """<!doctype html><meta charset="utf-8"><pre id="told"></pre><script>{script}
const record = {record};
async function unpacked(text) {{
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}}
(async () => {{
  const told = document.getElementById("told");
  try {{
    const module = new WebAssembly.Module(await unpacked(record.module));
    const imports = WebAssembly.Module.imports(module).length;
    const unit = await mb2fmuLive.Unit.load(record, unpacked);
    Object.entries({chosen}).forEach(([key, value]) => unit.chosen.set(key, value));
    const times = {times};
    const pushes = {pushes};  // of the one input: from which time on, and how much
    if (pushes.length) unit.inputs = (t, into) => (into[0] = pushes.findLast(([from]) => from <= t)[1]);
    const result = unit.run(times);
    const moved = unit.poses(times, result, {scales});
    told.textContent = JSON.stringify({{ imports, rows: result.rows, poses: moved.poses.map((c) => [...c]) }});
  }} catch (error) {{ told.textContent = JSON.stringify({{ failed: error.message }}); }}
}})();
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    name = shutil.which("chromium") or shutil.which("chromium-browser")
    if name is None:
        pytest.skip("chromium is not installed on this machine")
    return name


MECHANISMS = ["double_pendulum", "four_bar"]
"""An open chain with an input; a closed loop, whose outputs are projected."""
BY_DAY = ["sampled_cart_pole"]
"""What inputs, friction and events of states do is shown by day with the pushed mass; outputs of loops are projected by
the same code as in native FMUs."""
EVENTS = {
    "BouncingBall": lambda motion: np.max(np.diff(motion["v"])) > 1.0,  # rises at an impact alone
    "StickSlipBelt": lambda motion: np.ptp(motion["v"]) > 0.1,  # the belt's speed while it sticks, else less
    "SampledCartPole": lambda motion: len(set(motion["force"].tolist())) > 3,  # changes at instants alone
    "RockingBlock": lambda motion: np.ptp(motion["left.changes"] + motion["right.changes"]) > 0.0,
}
"""By the names of models with impacts, friction that sticks, instants, contacts that rest: whether any happened."""
WITH_EVENTS = ["bouncing_ball", "stick_slip_belt", "sampled_cart_pole", "rocking_block"]


@pytest.fixture(
    scope="module", params=marked(MECHANISMS + WITH_EVENTS, repeating={*MECHANISMS, *WITH_EVENTS} - {*BY_DAY})
)
def built(request: pytest.FixtureRequest) -> pipeline.FmuBuildResult:
    return pipeline.build(pipeline.derive(MODELS / f"{request.param}.py"))


def shown(browser: str, page: Path) -> dict:
    """What the page says when it is done."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [browser, *words, "--virtual-time-budget=20000", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    printed = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert printed, done.stderr[-2000:]
    return json.loads(html.unescape(printed[1]))


def test_the_page_has_the_numbers_of_the_native_fmu(built, browser: str, tmp_path: Path) -> None:
    """Other parameters and start values, an input held: the same states and outputs as the FMU that fmpy runs.

    Steps are powers of two, so that differences of times are the steps: then all bits are the same.
    """
    live = build_wasm_page_fmu(built)
    assert live is not None
    assert len(live.module) <= SMALL
    scene = built.scene
    experiment = built.derivation.definition.experiment
    step = 2.0 ** round(math.log2(experiment.stop / 100.0))
    times = [step * k for k in range(101)]
    other = next(k for k in live.parameters if k.unit in {"kg", "m", "N.s/m"} and k.value > 0.0)
    start = live.states[0]
    chosen = {f"parameters {other.index}": 1.25 * other.value, f"states {start.index}": start.value + 0.05}
    at = {other.name: 1.25 * other.value, start.name: start.value + 0.05}
    for each in live.inputs:
        chosen[f"inputs {each.index}"] = at[each.name] = 0.3
    package = tmp_path / "unit.fmu"
    mb2fmu.fmu.package.write_fmu_archive(built.core, package)
    native = mb2fmu.simulate(package, at=at, stop=times[-1], step=step)
    drawing = visualization.draw_motion(
        scene, visualization.scene.scene_pose_trajectories.make_single_instant_trajectory(scene)
    )
    page = tmp_path / "page.html"
    page.write_text(
        PAGE.format(
            script=SCRIPT,
            record=format_script_safe_json(form_interactive_fmu_record(live, scene, drawing)),
            chosen=json.dumps(chosen),
            times=json.dumps(times),
            pushes="[]",
            scales=json.dumps(list(drawing.arrow_scales)),
        )
    )
    reported = shown(browser, page)
    assert "failed" not in reported, reported
    assert reported["imports"] == 0
    rows = np.array(reported["rows"])
    for column, name in enumerate(live.signals):
        np.testing.assert_array_equal(rows[:, column], native[name], err_msg=name)
    if built.interface.variables_from_sources("mode"):
        assert EVENTS[built.derivation.definition.name](native), "nothing happened: the comparison shows nothing"
    poses = np.array(reported["poses"])
    drawn = native.drawing().poses
    keyed = [drawing.keys.index(key) for key in drawing.keys]
    for k in keyed[: drawn.positions.shape[1]]:
        np.testing.assert_allclose(poses[7 * k : 7 * k + 3].T, drawn.positions[:, k], atol=1e-6)


def pushed(speed: float) -> mb2fmu.Model:
    """A mass that dry friction slows down, holds and lets go, as a force says."""
    x, v, push = me.dynamicsymbols("x v push")
    m, F = sm.symbols("m F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    mass, loads = me.Particle("mass", P, m), [(P, (push - F * sm.sign(v)) * N.x)]
    model = mb2fmu.Model("Pushed", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[mass], forcelist=loads))
    model.parameter(m, 1.0, "kg")
    model.parameter(F, 1.0, "N")
    model.input(push, 0.0, "N")
    model.coordinate(x, 0.0, "m")
    model.speed(v, speed, "m/s")
    model.output("acceleration", v.diff(), "m/s2")
    model.when(x > -1, {v: pre(v) + 10.0})  # holds at the start, so it does not happen
    model.experiment(stop=2.0, step=1.0 / 64.0)
    return model


@pytest.mark.parametrize(("speed", "start"), [*by_night((0.0, 0.0)), (1.0, -1.0)])
def test_inputs_that_jump_let_go_what_friction_holds(speed: float, start: float, browser: str, tmp_path: Path) -> None:
    """Set between two steps: held at 0.5 N, slides off at 3 N, comes to rest and is held at 0.25 N, slides back.

    Then from a start on the other side than the model's: the mode is that of the start that was set.
    """
    built = pipeline.build(pipeline.derive(pushed(speed)))
    live = build_wasm_page_fmu(built)
    assert live is not None
    pushes = [[0.0, 0.5], [0.5, 3.0], [0.75, 0.25], [1.5, -2.0]]
    times = [k / 64.0 for k in range(129)]
    package, page = tmp_path / "unit.fmu", tmp_path / "page.html"
    mb2fmu.fmu.package.write_fmu_archive(built.core, package)
    force = "0.5 if t < 0.5 else (3 if t < 0.75 else (0.25 if t < 1.5 else -2))"
    native = mb2fmu.simulate(package, at={"v": start}, inputs={"push": force}, stop=times[-1], step=times[1])
    assert native["v"][1] == 0.0 if start == 0.0 else native["v"][1] < -0.9  # held, or not stopped
    assert np.any(native["v"][34:49] > 0.1)
    assert native["v"][94] == 0.0
    assert native["v"][-1] < 0.0
    drawing = visualization.draw_motion(
        built.scene, visualization.scene.scene_pose_trajectories.make_single_instant_trajectory(built.scene)
    )
    record, chosen = (
        format_script_safe_json(form_interactive_fmu_record(live, built.scene, drawing)),
        json.dumps({"states 1": start}),
    )
    page.write_text(PAGE.format(script=SCRIPT, record=record, chosen=chosen, times=times, pushes=pushes, scales="[]"))
    reported = shown(browser, page)
    assert "failed" not in reported, reported
    for column, name in enumerate(live.signals):
        np.testing.assert_array_equal(np.array(reported["rows"])[:, column], native[name], err_msg=name)


def test_the_module_is_the_same_again(built, monkeypatch) -> None:
    """From the cache, and compiled anew."""
    first, stored = build_wasm_page_fmu(built), build_wasm_page_fmu(built)
    monkeypatch.setattr(CompiledFileCache, "get", lambda *_: None)
    again = build_wasm_page_fmu(built)
    assert stored == first
    assert first is not None
    assert again is not None
    assert first.module == again.module
    assert first.module[:4] == b"\0asm"
    assert len(first.module) <= MAX_MODULE_BYTES


def test_fmus_of_python_do_not_run_in_pages() -> None:
    model = MODELS / "simple_pendulum.py"
    assert build_wasm_page_fmu(pipeline.build(pipeline.derive(model), backend="python")) is None


@pytest.mark.parametrize(
    ("value", "bounds", "ends"),
    [
        (2.0, (None, None), (0.0, 4.0)),
        (-3.0, (None, None), (-6.0, 0.0)),
        (0.0, (None, None), (-1.0, 1.0)),
        (1.0, (1e-6, None), (1e-6, 2.0)),
        (0.5, (0.0, 1.0), (0.0, 1.0)),
        (1.0, (-1e9, 1e9), (0.0, 2.0)),
    ],
)
def test_sliders_go_about_the_value_within_its_bounds(value, bounds, ends) -> None:
    found = make_parameter_slider("m", "kg", value, bounds, 0)
    assert (found.low, found.high) == ends
