"""A verdict lies beside the FMU that it is about, or nowhere: whatever ends a run, and whoever else runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from representatives import by_night
from shorter_validations import PRELUDE, shorten_validations, shorter_validations

from mb2fmu import pipeline, validation
from mb2fmu.cli import commands
from mb2fmu.errors import PackageError, PlatformError, ToolError
from mb2fmu.fmu.package import make_fmu_archive, read_archive, remove_validation_report, write_fmu_archive
from mb2fmu.fmu.toolchain import PLATFORMS, host_platform
from mb2fmu.pipeline.run_and_report import fmu_and_report_publication

MODEL = '''
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model


def swing(length: float = 0.5) -> Model:
    """A point mass on a rod."""
    q = me.dynamicsymbols("q")
    m, l, g = sm.symbols("m l g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A = N.orientnew("A", "Axis", (q, N.z))
    O.set_vel(N, 0)
    P = O.locatenew("P", -l * A.y)
    P.set_vel(N, l * q.diff() * A.x)
    lagrangian = m * l**2 * q.diff() ** 2 / 2 + m * g * l * sm.cos(q)
    method = me.LagrangesMethod(lagrangian, [q], bodies=[me.Particle("P", P, m)], frame=N)
    model = Model("Swing", method)
    model.parameter(m, 2.0, "kg")
    model.parameter(l, length, "m")
    model.parameter(g, 9.81, "m/s2")
    model.coordinate(q, 1.0, "rad")
    model.speed(q.diff(), 0.0, "rad/s", name="omega")
    model.experiment(stop=0.2, step=0.05, tolerance=1e-8)
    return model
'''
OTHER = next(each for each in PLATFORMS if each is not host_platform()).name
posix = pytest.mark.skipif(os.name == "nt", reason="there are no such signals")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "swing.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def proved(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an FMU that passed and its report."""
    folder = tmp_path_factory.mktemp("proved")
    with shorter_validations():
        assert pipeline.run(model, folder).passed
    return folder


@pytest.fixture
def folder(proved: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    for name in ("Swing.fmu", "Swing.html"):
        (tmp_path / name).write_bytes((proved / name).read_bytes())
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def call(*arguments: object) -> Result:
    return CliRunner().invoke(commands, list(map(str, arguments)), prog_name="mb2fmu")


def test_a_report_says_that_it_belongs_to_its_fmu(proved: Path) -> None:
    assert fmu_and_report_publication.match_report_to_fmu(proved / "Swing.html").passed
    result = call("validate", "--check-report", proved / "Swing.html")
    assert (result.exit_code, "it passed" in result.stdout) == (0, True)
    assert sorted(contents(proved)) == ["Swing.fmu", "Swing.html"]


def test_the_report_in_a_fmu_belongs_to_it_too(folder: Path) -> None:
    """It names the core, which does not depend on what packed it."""
    tree = read_archive(folder / "Swing.fmu")
    (folder / "inside.html").write_bytes(tree["documentation/index.html"])
    assert fmu_and_report_publication.match_report_to_fmu(folder / "inside.html", folder / "Swing.fmu").passed
    write_fmu_archive(remove_validation_report(tree), folder / "Swing.fmu")
    assert fmu_and_report_publication.match_report_to_fmu(folder / "inside.html", folder / "Swing.fmu").passed
    assert not fmu_and_report_publication.match_report_to_fmu(
        folder / "Swing.html"
    ).together  # that one names the archive


def test_one_other_byte_in_the_fmu_is_seen(folder: Path) -> None:
    tree = read_archive(folder / "Swing.fmu")
    (folder / "inside.html").write_bytes(tree["documentation/index.html"])
    path = next(path for path in tree if path.startswith("binaries/"))
    wrong = tree[path][:-1] + bytes([tree[path][-1] ^ 1])
    write_fmu_archive(type(tree)({**tree.files, path: wrong}), folder / "Swing.fmu")
    for page in ("Swing.html", "inside.html"):
        result = call("validate", "--check-report", folder / page, folder / "Swing.fmu")
        assert (result.exit_code, "another FMU" in result.stdout) == (1, True)


def test_a_report_of_a_failure_is_no_pass(folder: Path) -> None:
    page = (folder / "Swing.html").read_text()
    assert 'name="mb2fmu:verdict" content="passed"' in page
    (folder / "Swing.html").write_text(page.replace('verdict" content="passed"', 'verdict" content="failed"', 1))
    result = call("validate", "--check-report", folder / "Swing.html")
    assert (result.exit_code, "it failed" in result.stdout) == (1, True)


def test_what_cannot_be_checked_is_reported(folder: Path) -> None:
    (folder / "other.html").write_text("<html><title>holidays</title></html>")
    (folder / "other.fmu").write_bytes(b"nothing")
    with pytest.raises(PackageError, match="names no FMU"):
        fmu_and_report_publication.match_report_to_fmu(folder / "other.html", folder / "Swing.fmu")
    with pytest.raises(PackageError, match="not an FMU"):
        fmu_and_report_publication.match_report_to_fmu(folder / "Swing.html", folder / "other.fmu")
    with pytest.raises(PackageError, match="right path"):
        fmu_and_report_publication.match_report_to_fmu(folder / "none.html", folder / "Swing.fmu")
    assert call("validate", "--check-report", folder / "Swing.html", "--model", "x.py").exit_code == 2
    assert call("validate", folder / "Swing.fmu").exit_code == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ToolError("the FMU crashed"), MemoryError])
def test_a_run_that_ends_before_its_verdict_changes_nothing(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, error: object
) -> None:
    before = contents(folder)

    def end(*_: object, **__: object) -> None:
        assert contents_of_others(folder) == before
        raise error

    monkeypatch.setattr(validation, "validate", end)
    with pytest.raises((KeyboardInterrupt, ToolError, MemoryError)):
        pipeline.run(model, folder, arguments={"length": "0.7"})
    assert contents(folder) == before


def contents_of_others(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_fmu_that_fell_short_is_published_with_the_report_that_says_so(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged by another model than its own: both are replaced, and belong together."""
    other = pipeline.derive(model, arguments={"length": "0.9"})
    shorten_validations(monkeypatch)
    validate = validation.validate

    def judge(fmu: Path, _: object, *__: object, **___: object) -> validation.ValidationResult:
        return validate(fmu, other.definition, other.equations)

    monkeypatch.setattr(validation, "validate", judge)
    before = contents(folder)
    finished = pipeline.run(model, folder, arguments={"length": "0.7"})
    assert not finished.passed
    assert contents(folder).keys() == before.keys()
    assert all(contents(folder)[name] != before[name] for name in before)
    belonging = fmu_and_report_publication.match_report_to_fmu(folder / "Swing.html")
    assert (belonging.together, belonging.passed) == (True, False)


def test_an_unproven_fmu_takes_the_report_of_the_other_away(model: Path, folder: Path) -> None:
    (folder / "notes.html").write_text("mine")
    pipeline.export(model, folder, arguments={"length": "0.7"})
    assert sorted(contents(folder)) == ["Swing.fmu", "notes.html"]
    (folder / "Swing.html").write_text("<p>not made by mb2fmu</p>")
    pipeline.export(model, folder)
    assert sorted(contents(folder)) == ["Swing.fmu", "Swing.html", "notes.html"]


def test_what_cannot_be_run_here_is_not_begun(model: Path, folder: Path) -> None:
    before = contents(folder)
    with pytest.raises(PlatformError, match=re.escape(f"--platform host,{OTHER}")) as caught:
        pipeline.run(model, folder, platforms=OTHER)
    assert caught.value.exit_code == 2
    assert contents(folder) == before


def test_a_fmu_that_is_replaced_while_it_is_judged(model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is about the file that was handed over, and names its hash."""
    shorten_validations(monkeypatch)
    judged = folder / "Swing.fmu"
    before, validate = judged.read_bytes(), validation.validate

    def judge(fmu: Path, *rest: object, **named: object) -> validation.ValidationResult:
        judged.write_bytes(b"another")
        return validate(fmu, *rest, **named)

    monkeypatch.setattr(validation, "validate", judge)
    page = folder / "verdict.html"
    page.write_bytes(pipeline.render_validation_report(pipeline.validate(judged, model)))
    with pytest.raises(PackageError, match="not an FMU"):
        fmu_and_report_publication.match_report_to_fmu(page, judged)
    judged.write_bytes(before)
    assert fmu_and_report_publication.match_report_to_fmu(page, judged).passed


@pytest.mark.repeats  # by day pairs of many writers, in test_publishing
def test_two_runs_into_one_folder_do_not_mix(model: Path, tmp_path: Path) -> None:
    lengths = ("0.3", "0.6")
    script = f"{PRELUDE}\nimport mb2fmu.cli\nmb2fmu.cli.main()"
    base = [sys.executable, "-c", script, "run", str(model), "-o", str(tmp_path)]
    running = [
        subprocess.Popen([*base, "--set", f"length={length}"], stdout=subprocess.PIPE, text=True) for length in lengths
    ]
    said = [each.communicate(timeout=300)[0] for each in running]
    assert [each.returncode for each in running] == [0, 0], said
    assert fmu_and_report_publication.match_report_to_fmu(tmp_path / "Swing.html").passed
    assert sorted(contents(tmp_path)) == ["Swing.fmu", "Swing.html"]
    alone = [
        make_fmu_archive(pipeline.build(pipeline.derive(model, arguments={"length": each})).core) for each in lengths
    ]
    assert make_fmu_archive(remove_validation_report(read_archive(tmp_path / "Swing.fmu"))) in alone


WAITS = """
import signal, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background, or with nohup,
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # bequeaths signals that are ignored, and so they stay
import mb2fmu.cli, mb2fmu.validation

def wait(*_, **__):
    Path("@SIGN@").touch()
    time.sleep(120)

mb2fmu.validation.validate = wait
mb2fmu.cli.main()
"""


@posix
@pytest.mark.repeats  # by day a signal while the compiler runs
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_leaves_nothing_behind(model: Path, folder: Path, tmp_path_factory, number: int, code: int) -> None:
    before, scratch = contents(folder), tmp_path_factory.mktemp("scratch")
    sign = tmp_path_factory.mktemp("sign") / "sign"
    command = [sys.executable, "-c", WAITS.replace("@SIGN@", str(sign)), "run", str(model), "-o", str(folder)]
    running = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True)
    wait_for(sign, running)
    assert len(list(folder.iterdir())) == len(before) + 1  # the private folder
    running.send_signal(number)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == code, said
    assert "Traceback" not in said
    assert contents(folder) == before
    assert list(scratch.iterdir()) == []


SLOW = """#!/bin/sh
[ "$1" = --version ] && { echo slow; exit; }
touch @SIGN@
sleep 120
"""


@posix
def test_a_signal_ends_the_compiler_too(model: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before, place = contents(folder), tmp_path_factory.mktemp("slow")
    sign, compiler, scratch = place / "sign", place / "cc", place / "scratch"
    compiler.write_text(SLOW.replace("@SIGN@", str(sign)))
    compiler.chmod(0o755)
    scratch.mkdir()
    environment = {"TMPDIR": str(scratch), "CC": str(compiler), "MB2FMU_CACHE_DIR": str(place / "cache")}
    command = [sys.executable, "-m", "mb2fmu", "run", str(model), "-o", str(folder), "--compiler", "cc"]
    running = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.PIPE, text=True)
    wait_for(sign, running)
    running.terminate()
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 143, said
    assert "Traceback" not in said
    assert contents(folder) == before
    assert list(scratch.iterdir()) == []


def wait_for(sign: Path, running: subprocess.Popen[str]) -> None:
    """Until a process has made a file."""
    while not sign.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)


LIMITED = f"""{PRELUDE}
import resource, sys
import mb2fmu.cli
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
mb2fmu.cli.main()
"""


@posix
@pytest.mark.parametrize(
    ("command", "limit"), [*by_night(("run", 500), ("run", 200_000), ("run", None)), ("export", 60_000)]
)
def test_no_room_for_a_file_is_reported_and_changes_nothing(
    model: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory, command: str, limit: int | None
) -> None:
    """Files may not grow beyond a limit: it strikes at another place each time, and is a fault of ours at none."""
    before, scratch = contents(folder), tmp_path_factory.mktemp("scratch")
    limit = limit or len(before["Swing.fmu"]) - 1
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), command, str(model), "-o", str(folder)],
        env=os.environ | {"TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in {2, 3}, done.stderr
    assert "a fault of mb2fmu" not in done.stderr
    assert "too large" in done.stderr
    assert "→" in done.stderr
    assert contents(folder) == before
    assert list(scratch.iterdir()) == []
