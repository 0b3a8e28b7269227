"""``mb2fmu mcp``: thirteen tasks by the client of the package ``mcp``; files outside; what is left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pendulum_script import FORMED
from shorter_validations import PRELUDE
from unit.robots.robot_texts import ARM

from mb2fmu import deferred_imports
from mb2fmu.cli import commands
from mb2fmu.errors import ModelError
from mb2fmu.pipeline.agent_server.agent_server_folder import AgentServerFolder
from mb2fmu.pipeline.agent_server.agent_tool_answer import MAX_TEXT_CHARACTERS, AgentToolAnswer
from mb2fmu.pipeline.agent_server.command_json_summary import list_failed_validation_items, select_validation_facts

ROOT = Path(__file__).parents[4]
LISTS_PROCESSES = Path("/proc/self/cmdline").is_file()
SOLVED = FORMED + (
    "from scipy.integrate import solve_ivp\nf = sm.lambdify([q, u], kane.rhs().subs({m: 2.0, g: 9.81, l: 0.5}))\n"
    "solve_ivp(lambda t, x: f(*x).ravel(), (0.0, 2.0), [0.3, 0.0])\n"
)
ENDLESS = "import time\nwhile True:\n    time.sleep(0.1)\n"
SLIDER = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model

q, u = me.dynamicsymbols("q u")
m, k = sm.symbols("m k")
N, P = me.ReferenceFrame("N"), me.Point("P")
P.set_vel(N, u * N.x)
kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("block", P, m)], forcelist=[(P, -k * q * N.x)])


def slider() -> Model:
    model = Model("Slider", kane)
    model.parameter(m, 1.5, "kg", min=0.1)
    model.parameter(k, 20.0, "N/m")
    model.coordinate(q, 0.2, "m")
    model.speed(u, 0.0, "m/s")
    model.experiment(stop=1.0)
    return model
"""

Call = tuple[str, dict[str, Any]]
TASKS: Mapping[str, tuple[Sequence[Call], str, str]] = {
    "Start a crane for me, and see that its FMU is right.": (
        [("new", {"name": "crane"}), ("run", {"model": "crane.py"})], "validated", "Crane passed"
    ),
    "Here is my block on a spring; make an FMU of FMI 3.": (
        [("new", {"name": "slider", "text": SLIDER}), ("check", {"model": "slider.py"}),
         ("run", {"model": "slider.py", "fmi": "3"})], "validated", "FMI 3.0"
    ),
    "I have a SymPy script; turn it into an FMU.": (
        [("adopt", {"script": "swing.py"}), ("run", {"model": "swing_model.py"})], "validated", "Swing passed"
    ),
    "Turn this script of numbers into an FMU.": (
        [("adopt", {"script": "numbers.py"})], "refused", "no mechanics are found"
    ),
    "Is the pendulum that comes with mb2fmu right for a short rod, too?": (
        [("run", {"model": "simple_pendulum", "at": {"l": "0.3", "theta": "20 deg"}})], "validated", "passed"
    ),
    "How far does the block swing when it is twice as heavy?": (
        [("simulate", {"model": "slider.py", "at": {"m": "3"}, "stop": 2.0})], "simulated, not validated", "smallest"
    ),
    "Does this FMU do what its description says?": (
        [("audit", {"fmu": "out/Slider.fmu", "run": False})], "no errors found", ""
    ),
    "Is this FMU the block that a colleague describes?": (
        [("check", {"model": "other.py", "fmu": "out/Slider.fmu"})], "not validated", "likely:"
    ),
    "Why is it not that block?": (
        [("explain", {"file": "out/Slider.fmu", "model": "other.py"})], "not validated", "likely:"
    ),
    "Make an FMU of a model that I have not finished.": (
        [("new", {"name": "unfinished", "text": SLIDER.replace('    model.parameter(k, 20.0, "N/m")\n', "")}),
         ("run", {"model": "unfinished.py"})], "refused", "k"
    ),
    "Run the model of the folder above.": ([("run", {"model": "../secret.py"})], "refused", "outside of the folder"),
    "Make an FMU of my robot.": ([("run", {"model": "arm.urdf"})], "validated", "passed"),
    "This script never ends.": (
        [("adopt", {"script": "endless.py", "time_limit": 2.0})], "not finished", "ended after 2 s"
    ),
}  # fmt: skip
"""In words → the calls that an agent makes, verdict of the last one, and words of its text."""

NIGHTLY = {
    "Start a crane for me, and see that its FMU is right.",
    "I have a SymPy script; turn it into an FMU.",
    "Is the pendulum that comes with mb2fmu right for a short rod, too?",
    "Make an FMU of my robot.",
    "Make an FMU of a model that I have not finished.",
    "Why is it not that block?",
    "Turn this script of numbers into an FMU.",
    "Does this FMU do what its description says?",
    "This script never ends.",
}
"""More models, commands and reasons; no other task needs what they make. What never ends is ended below, too."""


def fill(folder: Path) -> None:
    """What a user has."""
    (folder / "swing.py").write_text(SOLVED)
    (folder / "numbers.py").write_text("print(2 + 2)\n")
    (folder / "endless.py").write_text(ENDLESS)
    (folder / "arm.urdf").write_text(ARM)
    (folder / "other.py").write_text(SLIDER.replace("20.0", "20.2"))


def server_parameters(folder: Path, *modules: Path) -> Any:
    from mcp import StdioServerParameters

    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, modules), str(ROOT), *filter(None, sys.path)])}
    arguments = ["-P", "-m", "mb2fmu", "mcp"]
    return StdioServerParameters(command=sys.executable, args=arguments, cwd=folder, env=dict(environment))


def is_running(mark: str) -> bool:
    """Whether a process has this in its command."""
    commands = (each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.is_file())
    return any(mark.encode() in command for command in commands)


@dataclass(frozen=True)
class ServedTasks:
    """What one server answered over stdin and stdout, until its client left in the middle of a call.

    Attributes:
        answers: Task → answers to its calls.
        left: The script that never ends, which a command was reading.
        began: Whether it was.
    """

    answers: dict[str, list[Any]]
    left: str
    began: bool


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ServedTasks:
    selected = {item.callspec.params.get("task") for item in request.session.items if hasattr(item, "callspec")}
    mcp = pytest.importorskip("mcp", reason="mb2fmu mcp needs the package mcp")
    folder = tmp_path_factory.mktemp("served") / "models"
    folder.mkdir()
    fill(folder)
    mark = f"endless_{os.getpid()}.py"
    (folder / mark).write_text(ENDLESS)
    (folder.parent / "sitecustomize.py").write_text(PRELUDE)  # of the commands, which are processes

    async def ask() -> ServedTasks:
        async with mcp.Client(server_parameters(folder, folder.parent)) as client:
            answers = {
                task: [await client.call_tool(name, arguments) for name, arguments in calls]
                for task, (calls, _, _) in TASKS.items()
                if task not in NIGHTLY or task in selected
            }
            call = asyncio.create_task(client.call_tool("adopt", {"script": mark, "time_limit": 60.0}))
            for _ in range(200 if LISTS_PROCESSES else 0):
                await asyncio.sleep(0.1)
                if is_running(mark):
                    break
            began = is_running(mark)
            call.cancel()
        return ServedTasks(answers, mark, began)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=pytest.mark.repeats if task in NIGHTLY else ()) for task in TASKS]
)
def test_each_task_ends_validated_or_with_its_reason(task: str, served: ServedTasks) -> None:
    _, verdict, words = TASKS[task]
    last = served.answers[task][-1]
    text = last.content[0].text
    assert last.structured_content["verdict"] == verdict, text
    assert text.endswith(f"Verdict: {verdict}")
    assert words in text
    assert last.is_error == (verdict in ("refused", "not finished"))
    assert last.structured_content["good"] == (verdict not in ("refused", "not finished", "not validated"))


def test_facts_are_numbers_of_the_commands(served: ServedTasks) -> None:
    answers = served.answers
    heavy = answers["How far does the block swing when it is twice as heavy?"][-1].structured_content
    assert heavy["variables"]["q"]["largest"] == pytest.approx(0.2)
    assert heavy["variables"]["q"]["smallest"] == pytest.approx(-0.2, rel=1e-3)
    facts = answers["Is this FMU the block that a colleague describes?"][-1].structured_content
    assert facts["result"] == "failed"
    ratios = [failure["ratio"] for failure in facts["failures"] if "ratio" in failure]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 10.0
    made = answers["Here is my block on a spring; make an FMU of FMI 3."]
    assert made[1].structured_content["states"] == ["q", "u"]
    assert made[2].structured_content["fmu"] == "out/Slider.fmu"
    assert "FMU        out/Slider.fmu" in made[2].content[0].text  # relative to the folder


@pytest.mark.skipif(not LISTS_PROCESSES, reason="processes are listed by Linux only")
def test_a_client_that_leaves_ends_the_command(served: ServedTasks) -> None:
    assert served.began
    end = time.monotonic() + 10.0
    while is_running(served.left) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_running(served.left)


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "link.py", "linked/x.py", "circle", "a\0b"])
def test_nothing_outside_of_the_folder_is_named(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "x.py").write_text("")
    (folder / "link.py").symlink_to(tmp_path / "x.py")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    served = AgentServerFolder(folder.resolve())
    if name != "circle":  # Python 3.13 resolves it to itself, inside the folder
        with pytest.raises(ModelError, match="cannot be used"):
            served.find_file(name)
        with pytest.raises(ModelError, match="cannot be used"):
            served.find_model(name)
    assert served.find_file("sub/../crane.py") == folder.resolve() / "crane.py"
    assert served.find_file(str(folder / "crane.py")) == folder.resolve() / "crane.py"
    assert served.find_model("simple_pendulum") == "simple_pendulum"


def test_results_are_not_written_through_links(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    (folder / "out").mkdir(parents=True)
    served = AgentServerFolder(folder.resolve())
    assert served.find_output_folder() == folder.resolve() / "out"
    (folder / "out" / "Crane.fmu").symlink_to(tmp_path / "elsewhere.fmu")
    with pytest.raises(ModelError, match="outside of the folder"):
        served.find_output_folder()
    (folder / "out" / "Crane.fmu").unlink()
    (folder / "out").rmdir()
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(ModelError, match="outside of the folder"):
        served.find_output_folder()


def test_values_are_no_files(tmp_path: Path) -> None:
    from mb2fmu.pipeline.agent_server.mcp_tool_server import AgentTools

    calls = [{"inputs": {"force": "../x.csv"}}, {"at": {"m": "x.json"}}]
    for values in calls:
        with pytest.raises(ModelError, match="it names a file"):
            asyncio.run(AgentTools(tmp_path).simulate("simple_pendulum", **values))


def test_a_name_is_no_option(tmp_path: Path) -> None:
    from mb2fmu.pipeline.agent_server.mcp_tool_server import AgentTools

    answer = asyncio.run(AgentTools(tmp_path).new("--help"))
    assert answer.verdict == "refused"
    assert "cannot name a model" in answer.text
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_imports, "find_spec", lambda _module: None)
    result = CliRunner().invoke(commands, ["mcp"])
    assert result.exit_code == 3
    assert "pip install 'mb2fmu[mcp]'" in result.output


def test_a_long_text_keeps_its_end() -> None:
    text = AgentToolAnswer("refused", "x" * (MAX_TEXT_CHARACTERS + 5) + "end").format_text()
    assert text.startswith("[the first 8 characters are left out]")
    assert text.endswith("end\n\nVerdict: refused")
    assert AgentToolAnswer("validated", "", is_good=True).format_text() == "Verdict: validated"


def test_failures_come_worst_first() -> None:
    facts = {
        "model": "X", "verdict": "failed", "influences": [{"name": "m", "exercised": False}],
        "variables": [{"name": "q", "verdict": "failed", "ratio": 3.0}, {"name": "u", "verdict": "passed"}],
        "others": [{"kind": "ModelExchange", "variables": [{"name": "q", "verdict": "failed", "ratio": None}]}],
        "conformance": [{"checker": "fmpy", "severity": "error", "message": "no"}, {"severity": "note"}],
    }  # fmt: skip
    assert [item["where"] for item in list_failed_validation_items(facts)] == [
        "variables",
        "others.variables",
        "conformance",
    ]
    selected = select_validation_facts(facts)
    assert [failure.get("name") for failure in selected["failures"]] == ["q", "q", None]
    assert selected["failures"][1]["ratio"] == 3.0
    assert selected["not_exercised"] == ["m"]
