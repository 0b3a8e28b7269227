"""Pages for beginners, executed as a reader types them: every command and every Python block, in order, in one folder.

Left out: installing (``pip``, ``scripts/…``), and tools that the tests do not have; which ones is written down below.
By day one ``run`` is typed, the others as ``export``, motions alone are judged, no other checkers are asked, and cut
models run for 0.05 s. By night
everything is typed as it stands, finite elements too.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pendulum_script import FORMED
from shorter_validations import shorter_validations
from unit.robots.robot_texts import ARM

from mb2fmu.cli import commands

ROOT = Path(__file__).parents[2]
NOT_RUN = {"pip", "scripts/demo", "scripts/test", "eval", "OMSimulator"}
"""First words of commands that are not run."""
ENDLESS = {"watch", "mcp"}
"""Commands that go on until somebody ends them; ``tests/unit/pipeline`` types them."""
NOT_THERE = {"pyfmi"}
"""Packages of importers that the tests do not have."""

SCRIPT = FORMED + (
    "from scipy.integrate import solve_ivp\nf = sm.lambdify([q, u], kane.rhs().subs({m: 2.0, g: 9.81, l: 0.5}))\n"
    "solve_ivp(lambda t, x: f(*x).ravel(), (0.0, 2.0), [0.3, 0.0])\n"
)
"""What a user has who adopts a script."""

Block = tuple[str, str]


def blocks(page: Path) -> list[Block]:
    """(language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def model_file(following: list[Block]) -> str:
    """What a reader calls the file of a model that is shown: as the first command after it does."""
    return next(
        match[1] for language, more in following if language == "sh" and (match := re.search(r"(\w+\.py)\b", more))
    )


def typed(words: list[str]) -> Result:
    return CliRunner().invoke(commands, words[1:], prog_name="mb2fmu")


class Reader:
    """Types what a page shows, in a folder of his own."""

    def __init__(self, *, proving: set[str] | None = None) -> None:
        self.proving = proving
        """Model files whose next ``run`` judges the motion; None: every ``run`` judges everything."""
        self.names: dict[str, object] = {}
        self.commands: list[str] = []
        self.script = ""

    def type(self, line: str) -> None:
        """One line of a shell."""
        words = shlex.split(line, comments=True)
        if not words or words[0] in NOT_RUN:
            return
        assert words[0] == "mb2fmu", line
        self.commands.append(words[1])
        if words[1] in ENDLESS:
            return
        if self.proving is None:
            done = typed(words)
        else:
            if words[1] == "run" and words[2] in self.proving:
                self.proving.remove(words[2])
            elif words[1] == "run":
                words[1] = "export"
            elif words[1:3] == ["system", "parts/system.py"]:
                words += ["--set", "stop=0.05"]
            elif words[1] == "audit":
                words += ["--no-checkers"]
            with shorter_validations():
                done = typed(words)
        assert done.exit_code == 0, f"{line}\n{done.output}"

    def run(self, text: str) -> None:
        """A block of Python, after those before it."""
        if not any(f"import {name}" in text or f"from {name}" in text for name in NOT_THERE):
            exec(text, self.names)

    def read(self, page: Path) -> None:
        """The whole page."""
        shown = blocks(page)
        for k, (language, text) in enumerate(shown):
            if language == "sh":
                for line in text.splitlines():
                    self.type(line)
            elif language == "python" and ("dynamicsymbols(" in text or "-> Model" in text):
                self.script += text
                if "-> Model" in text:
                    Path(model_file(shown[k:])).write_text(self.script)
                    self.script = ""
            elif language == "python":
                self.run(text)


@pytest.fixture(autouse=True)
def _folder_of_his_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


by_day_and_night = pytest.mark.parametrize(
    "by_day", [pytest.param(True, id="day"), pytest.param(False, id="night", marks=pytest.mark.repeats)]
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@by_day_and_night
def test_readme(by_day: bool) -> None:
    """The reader has installed the package, a script and a robot's description."""
    Path("arm.urdf").write_text(ARM)
    Path("script.py").write_text(SCRIPT)
    reader = Reader(proving={"pendulum.py"} if by_day else None)
    reader.read(ROOT / "README.md")
    assert set(reader.commands) == set(commands.commands)
    assert Path("out/Crane.fmu").is_file()
    assert Path("out/Pendulum.html").is_file()
    assert Path("cases/results.parquet").is_file()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.repeats  # README has the same commands
def test_start_and_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The importing page goes on with the FMU that the start page made."""
    reader = Reader()
    import matplotlib as mpl

    mpl.use("Agg")
    monkeypatch.setattr("matplotlib.pyplot.show", lambda *_args, **_kwargs: None)
    reader.read(ROOT / "docs" / "tutorials" / "start.md")
    assert Path("crane.svg").is_file()
    shutil.copy("out/Crane.fmu", "Crane.fmu")
    reader.read(ROOT / "docs" / "how_to" / "importing.md")


@pytest.mark.slow
@by_day_and_night
def test_tutorial(by_day: bool) -> None:
    Reader(proving=set() if by_day else None).read(ROOT / "docs" / "tutorials" / "tutorial.md")
    assert Path("out/Cart.fmu").is_file()


@pytest.mark.slow
@pytest.mark.repeats  # README has the same commands
def test_sympy_scripts() -> None:
    reader = Reader(proving={"pendulum.py"})
    Path("pendulum.py").write_text(SCRIPT)
    reader.read(ROOT / "docs" / "tutorials" / "sympy_scripts.md")
    assert reader.commands == ["adopt", "run", "simulate"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["robot", pytest.param("coupled_system", marks=pytest.mark.repeats)])
def test_robot_and_coupled_system(name: str) -> None:
    reader = Reader(proving=set())
    reader.read(ROOT / "docs" / "tutorials" / f"{name}.md")
    assert len(reader.commands) >= 3


@pytest.mark.slow
@pytest.mark.repeats
def test_finite_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("skfem", reason="scikit-fem, which meshes and assembles, is not installed")
    monkeypatch.syspath_prepend(".")
    for suffix in ("inp", "sti", "mas", "dof"):
        shutil.copy(ROOT / "tests" / "unit" / "model" / "flexible" / "calculix" / f"bar.{suffix}", ".")
    reader = Reader()
    reader.read(ROOT / "docs" / "tutorials" / "finite_elements.md")
    errors = reader.names["reduced"][:2] / reader.names["full"][:2] - 1  # type: ignore[index]
    assert min(errors) > 0
    assert max(errors) < 2e-3
    assert reader.names["bar"].data.frequencies()[-1] < 2 * math.pi * 3000  # type: ignore[attr-defined]


def test_completion_is_there() -> None:
    """What the start page says of the shell."""
    environment = {"_MB2FMU_COMPLETE": "bash_complete", "COMP_WORDS": "mb2fmu linear", "COMP_CWORD": "1"}
    code = "from mb2fmu.cli import commands; commands(prog_name='mb2fmu')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert "linearize" in done.stdout
