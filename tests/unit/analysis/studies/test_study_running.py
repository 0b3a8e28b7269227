"""Studies that are run: rows for what fails, nothing lost, the same results however they are run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from representatives import by_night

from mb2fmu.analysis.studies import dask_workers, study_result_store
from mb2fmu.analysis.studies.dask_workers import connect_dask_workers
from mb2fmu.cli.cli_application import commands
from mb2fmu.errors import AnalysisError, ToolError
from mb2fmu.pipeline.study_runs.study_run import run_study
from mb2fmu.pipeline.study_runs.study_summary import format_study_case_command

MODELS = Path(__file__).parents[4] / "models"
FEW = "'at the end' = { of = 'h' }\n"
ALL = (
    FEW
    + """
lowest = { of = "h", take = "smallest" }
lands = { of = "h", take = "first-crossing" }
half = { of = "h", take = "first-crossing", level = 0.5, direction = "falling" }
back = { of = "h", take = "first-crossing", level = 0.5, direction = "rising" }
mean = { of = "v", take = "mean" }
rms = { of = "v", take = "rms" }
steps = "counted"
"""
)


def plan_of(unit: Path, folder: Path, rows: str, more: str = "", results: str = FEW) -> Path:
    (folder / "cases.csv").write_text(rows)
    path = folder / "plan.toml"
    lines = f"fmu = '{unit}'\nstop = 1.0\nstep = 0.01\n{more}\n[cases]\nmethod = 'table'\nfile = 'cases.csv'\n"
    path.write_text(f"{lines}\n[results]\n{results}")
    return path


def table(folder: Path) -> dict[str, list]:
    return pq.read_table(folder / "results.parquet").to_pydict()


def test_results_are_those_of_free_fall_and_what_fails_is_a_row(falling: Path, tmp_path: Path) -> None:
    rows = "g,push,mood\n9.81,0,0\n4,0,0\n4,0,3\n4,1,0\n4,0,4\n9.81,0,0\n"
    outcome = run_study(plan_of(falling, tmp_path, rows, results=ALL), tmp_path / "out", scheduler="none")
    found = table(outcome.folder)
    assert outcome.failed == 2
    assert "fmi2DoStep returned" in found["message"][2]
    assert "h is nan at t = 0.51 s" in found["message"][4]
    for k, g in ((0, 9.81), (1, 4.0), (3, 3.0), (5, 9.81)):
        assert found["message"][k] == ""
        assert found["at the end"][k] == pytest.approx(1.0 - 0.5 * g)
        assert found["lowest"][k] == found["at the end"][k]
        assert found["lands"][k] == pytest.approx(np.sqrt(2.0 / g), abs=1e-4)
        assert found["half"][k] == pytest.approx(np.sqrt(1.0 / g), abs=1e-4)
        assert np.isnan(found["back"][k])
        assert found["mean"][k] == pytest.approx(-0.5 * g)
        assert found["rms"][k] == pytest.approx(g / np.sqrt(3.0))
        # The FMU does not forget at a reset: it got a new instance each time.
        assert found["steps"][k] == 100.0
    assert np.isnan([found[name][2] for name in ("at the end", "lowest", "steps")]).all()
    page = outcome.summary.read_text()
    assert "fmi2DoStep returned" in page
    assert "Each case is a line over what varies" in page
    assert format_study_case_command(outcome.study, outcome.folder / "Falling.fmu", 3).split()[:2] == [
        "mb2fmu",
        "simulate",
    ]


def test_a_replayed_case_has_the_bits_of_its_row(falling: Path, tmp_path: Path) -> None:
    rows = "g,push\n9.81,0.3\n3.7000000000000002,0.1\n"
    outcome = run_study(plan_of(falling, tmp_path, rows), tmp_path / "out", scheduler="none")
    command = format_study_case_command(outcome.study, outcome.folder / "Falling.fmu", 1).split()[1:]
    written = tmp_path / "case.csv"
    done = CliRunner().invoke(commands, [*command[: command.index("--plot")], "--csv", str(written)])
    assert done.exit_code == 0, done.output
    head, *_, last = written.read_text().splitlines()
    assert (
        float(last.split(",")[head.split(",").index("h [m]" if "h [m]" in head else "h")])
        == table(outcome.folder)["at the end"][1]
    )


def test_a_replayed_case_of_a_model_follows_the_inputs_of_its_experiment(tmp_path: Path) -> None:
    """The pendulum's torque is a sine in the model, which its unit does not know."""
    plan = {
        "model": str(MODELS / "double_pendulum.py"), "stop": 0.5, "cases": {"method": "latin-hypercube", "count": 2},
        "vary": {"m2": {"from": 0.5, "to": 2.0}}, "results": {"tip.x": "tip.x"},
    }  # fmt: skip
    outcome = run_study(plan, tmp_path / "out", scheduler="none")
    command = format_study_case_command(outcome.study, outcome.folder / "DoublePendulum.fmu", 1).split()[1:]
    written = tmp_path / "case.csv"
    done = CliRunner().invoke(commands, [*command[: command.index("--plot")], "--csv", str(written)])
    assert done.exit_code == 0, done.output
    head, *_, last = written.read_text().splitlines()
    values = dict(zip(head.split(","), map(float, last.split(",")), strict=True))
    assert values["shoulder.torque [N.m]"] > 0.1
    assert values["tip.x [m]"] == table(outcome.folder)["tip.x"][1]


def test_an_interrupted_study_goes_on_and_ends_with_the_same_bytes(
    falling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "g\n" + "\n".join(str(0.5 * k) for k in range(1, 30)) + "\n"
    plan = plan_of(falling, tmp_path, rows, "trajectories = ['h']")
    whole = run_study(plan, tmp_path / "whole", scheduler="none")
    monkeypatch.setattr(study_result_store, "FLUSH_INTERVAL_S", 0.0)

    def interrupt(done: int, n: int, _failed: int) -> None:
        if 2 < done < n:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(plan, tmp_path / "cut", scheduler="none", on_progress=interrupt)
    assert json.loads((tmp_path / "cut/manifest.json").read_text())["state"] == "running"
    begun: list[int] = []
    again = run_study(
        plan, tmp_path / "cut", scheduler="none", resume=True, on_progress=lambda done, _n, _failed: begun.append(done)
    )
    assert 2 < begun[0] < 29
    assert (again.folder / "results.parquet").read_bytes() == (whole.folder / "results.parquet").read_bytes()
    paths = pq.read_table(again.folder / "trajectories").sort_by("case").to_pydict()
    assert len(paths["h"]) == 29 * 101
    np.testing.assert_allclose(paths["h"][:101], 1.0 - 0.25 * np.array(paths["time"][:101]) ** 2)
    manifest = json.loads((again.folder / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert set(manifest["files"]) >= {"results.parquet"}


def test_another_fmu_or_plan_does_not_go_on(falling: Path, tmp_path: Path) -> None:
    plan = plan_of(falling, tmp_path, "g\n1\n2\n")
    run_study(plan, tmp_path / "out", scheduler="none")
    with pytest.raises(AnalysisError, match="there is a study in it"):
        run_study(plan, tmp_path / "out", scheduler="none")
    assert run_study(plan, tmp_path / "out", scheduler="none", resume=True).cases == 2
    changed = tmp_path / "Falling.fmu"
    changed.write_bytes(falling.read_bytes() + b"\0\0")  # the end of an archive may have a comment
    other = plan_of(changed, tmp_path, "g\n1\n3\n")
    before = (tmp_path / "out/results.parquet").read_bytes()
    with pytest.raises(AnalysisError) as caught:
        run_study(other, tmp_path / "out", scheduler="none", resume=True)
    assert "the FMU is another one" in str(caught.value)
    assert "other cases than those" in str(caught.value)
    assert (tmp_path / "out/results.parquet").read_bytes() == before


def test_what_does_not_fit_the_fmu_is_named_at_once_by_the_command(falling: Path, tmp_path: Path) -> None:
    plan = plan_of(falling, tmp_path, "g,mass,h\n1,1,1\n,1,1\n", "kind = 'me'\ntrajectories = ['hh']")
    done = CliRunner().invoke(commands, ["study", str(plan), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    message = done.output
    for part in ("no variable mass", "h cannot be set: it is output", "hh is no variable", "offers no ModelExchange",
                 "g is empty in case 1"):  # fmt: skip
        assert part in message
    assert not (tmp_path / "out").exists()


def test_what_is_wrong_with_a_plan_and_what_does_not_fit_the_fmu_are_reported_at_once(
    falling: Path, tmp_path: Path
) -> None:
    """Each fault once, and nothing that only follows from one: no cases, no bounds of values that are none."""
    plan = {
        "fmu": str(falling),
        "stop": -1.0,
        "step": 400.0,
        "sett": {},
        "cases": {"method": "sobol", "count": 100},
        "vary": {"g": {"from": "one"}, "mass": {"from": 1, "to": 2}, "push": {"from": 3, "to": 2}, "mood": 1.0},
        "set": {"v": True, "depth": 1.0},
        "results": {"top": {"of": "height"}, "low": {"of": "h", "take": "lowest"}},
        "trajectories": ["hh"],
        "kind": "me",
    }
    with pytest.raises(AnalysisError) as caught:
        run_study(plan, tmp_path / "out", scheduler="none")
    messages = [f"{fault.where}: {fault.what}" for fault in caught.value.faults]
    parts = (
        *(
            "sett means nothing",
            "stop: -1.0 is no positive",
            "100 is no power",
            "vary.g: does not say",
            "vary.mood: 1.0",
        ),
        *("set.v: True is no number", "'lowest' is no take", "no variable mass", "nothing between 3 and 2"),
        *("no variable depth", "height is no variable", "hh is no variable", "offers no ModelExchange"),
    )
    assert [part for part in parts if sum(part in each for each in messages) != 1] == []
    assert len(messages) == len(parts), messages
    assert not (tmp_path / "out").exists()


def test_numbers_of_a_line_are_judged_though_its_count_is_missing(falling: Path, tmp_path: Path) -> None:
    plan = {
        "fmu": str(falling), "cases": {"method": "grid"}, "results": {"low": "h"},
        "vary": {"g": {"from": 3, "to": 2}, "push": {"from": "a", "to": 2}, "mood": {"mean": 1, "deviation": -1}},
    }  # fmt: skip
    with pytest.raises(AnalysisError) as caught:
        run_study(plan, tmp_path / "out", scheduler="none")
    messages = [f"{fault.where}: {fault.what}" for fault in caught.value.faults]
    for part in ("vary.g: a grid needs", "vary.g: there is nothing between 3 and 2: it goes downward",
                 "vary.push: a grid needs", "vary.push: 'a' is no number", "vary.mood: a grid draws nothing",
                 "vary.mood: the standard deviation -1 is not positive"):  # fmt: skip
        assert sum(part in each for each in messages) == 1, messages
    assert len(messages) == 6, messages


def test_a_model_with_arguments_is_studied(tmp_path: Path) -> None:
    """Two links of a chain instead of three: they have two angles."""
    words = ("--set", "n=2", "--vary", "m=1:2", "--count", "2", "--stop", "0.1", "--step", "0.05")
    code, said = commanded(MODELS / "n_link_pendulum.py", *words, "--out", tmp_path / "out")
    assert code == 0, said
    assert [name for name in table(tmp_path / "out") if name.startswith("q")] == ["q1", "q2"]
    code, said = commanded("plan.toml", "--set", "n=2", "--out", tmp_path / "none")
    assert code == 2
    assert "--set: a plan says this itself" in said.replace("\n", " ")


@pytest.mark.parametrize("end", ["of a case", *by_night("of a worker, too")])
def test_workers_lose_nothing_when_one_is_killed_and_give_the_same_results(
    end: str, falling: Path, tmp_path: Path
) -> None:
    """One case aborts its process: a row with a message, and all else is there; a worker is killed, too, by night.

    Where none does, bytes are those without workers, also of cases that fail.
    """
    values = [f"{0.01 * k:.2f},{3 if k % 40 == 7 else 0}" for k in range(1, 51)]
    calm = "g,mood\n" + "\n".join(values) + "\n"
    rows = calm.replace("\n0.11,0\n", "\n0.11,1\n")
    (tmp_path / "calm").mkdir()
    calmly = plan_of(falling, tmp_path / "calm", calm, "trajectories = ['h']")
    here = run_study(calmly, tmp_path / "here", scheduler="none")
    plan = plan_of(falling, tmp_path, rows)
    killed: list[int] = []
    with connect_dask_workers("local", 2, tmp_path, 50) as client:
        again = run_study(calmly, tmp_path / "again", client=client)
        # They run FMUs: deriving equations, half of the imports, is not their business.
        assert not any(client.run(lambda: {"sympy", "scipy"} & set(sys.modules)).values())

        def report_progress(done: int, _n: int, _failed: int) -> None:
            if end != "of a case" and done > 20 and not killed and client.nthreads():
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[-1], signal.SIGKILL)

        there = run_study(plan, tmp_path / "there", scheduler=client.scheduler.address, on_progress=report_progress)
        assert bool(killed) == (end != "of a case")
    assert (again.folder / "results.parquet").read_bytes() == (here.folder / "results.parquet").read_bytes()
    order = [("case", "ascending"), ("time", "ascending")]
    paths = [pq.read_table(each.folder / "trajectories").sort_by(order) for each in (again, here)]
    assert paths[0].equals(paths[1])
    found, wanted = table(there.folder), table(here.folder)
    assert (there.failed, here.failed) == (3, 2)
    for k in range(50):
        if k == 10:
            assert "the process that ran it ended" in found["message"][k]
        else:
            ours, theirs = ([each[name][k] for name in wanted] for each in (found, wanted))
            np.testing.assert_equal(ours, theirs)


def runs_a_chunk(dask_scheduler: Any) -> bool:
    """Whether a scheduler waits for a worker's answer."""
    return any(task.state == "processing" for task in dask_scheduler.tasks.values())


def test_answers_that_end_with_their_worker_are_made_again(falling: Path, tmp_path: Path) -> None:
    """Workers are killed that have finished chunks nobody has fetched yet; others are waited for, however slow."""
    rows = "g\n" + "\n".join(f"{0.01 * k:.2f}" for k in range(1, 101)) + "\n"
    plan = plan_of(falling, tmp_path, rows)
    here = run_study(plan, tmp_path / "here", scheduler="none")
    killed: list[int] = []
    impatient = dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1s"})
    with impatient, connect_dask_workers("local", 1, tmp_path, 100) as client:

        def report_progress(done: int, _n: int, _failed: int) -> None:
            if done and not killed:
                while client.run_on_scheduler(runs_a_chunk):
                    time.sleep(0.01)  # what was handed out is finished meanwhile
                killed.extend(client.run(os.getpid).values())
                for each in killed:
                    os.kill(each, signal.SIGKILL)
                time.sleep(0.5)  # new workers take longer to begin
                assert client.cluster.workers

        there = run_study(plan, tmp_path / "there", client=client, on_progress=report_progress)
    assert killed
    assert (there.folder / "results.parquet").read_bytes() == (here.folder / "results.parquet").read_bytes()


@pytest.mark.repeats  # by day workers that end with a case, and with finished answers
def test_a_worker_that_is_killed_while_it_gets_the_fmu_is_no_hindrance(falling: Path, tmp_path: Path) -> None:
    plan = plan_of(falling, tmp_path, "g\n" + "\n".join(map(str, range(1, 41))) + "\n")
    with connect_dask_workers("local", 1, tmp_path, 100) as client:
        register, killed = client.register_plugin, []

        def killing(*given: object, **named: object) -> object:
            if not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGSTOP)  # it takes the FMU, and never answers
                threading.Timer(0.5, os.kill, (killed[0], signal.SIGKILL)).start()
            return register(*given, **named)

        client.register_plugin = killing
        ran = run_study(plan, tmp_path / "out", client=client)
    assert killed
    assert ran.failed == 0
    assert table(ran.folder)["at the end"] == pytest.approx([1.0 - 0.5 * g for g in range(1, 41)])


def test_a_folder_has_one_study_at_a_time_and_a_dead_one_is_no_hindrance(falling: Path, tmp_path: Path) -> None:
    plan, out = plan_of(falling, tmp_path, "g\n1\n2\n"), tmp_path / "out"
    out.mkdir()
    (out / ".study.lock").write_text("process 1 on another machine")  # left by a process that was killed
    refused: list[str] = []

    def report_progress(*_: int) -> None:
        for resume in (True, False):
            with pytest.raises(AnalysisError) as caught:
                run_study(plan, out, scheduler="none", resume=resume)
            refused.append(str(caught.value))

    run_study(plan, out, scheduler="none", on_progress=report_progress)
    assert refused
    assert all(f"a study is being run in it, by process {os.getpid()} on" in message for message in refused)
    assert table(out)["at the end"] == pytest.approx([0.5, 0.0])
    assert not (out / ".study.lock").exists()


def test_without_a_scheduler_nothing_is_left(falling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_workers, "CONNECT_TIMEOUT_S", 0.2)
    plan = plan_of(falling, tmp_path, "g\n1\n2\n")
    for folder in (tmp_path / "out", tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ToolError, match="no scheduler answers"):
            run_study(plan, folder, scheduler="tcp://127.0.0.1:9")
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("package", "further"), [
    ("pyarrow", ""), ("zarr", "trajectories = ['h']\ntrajectory_format = 'zarr'"),
])  # fmt: skip
def test_a_package_that_is_missing_is_reported_before_the_first_case(
    falling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, further: str
) -> None:
    plan = plan_of(falling, tmp_path, "g\n1\n2\n", further)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ToolError, match=f"{package} is not installed"):
        run_study(plan, tmp_path / "out", scheduler="none")
    assert not (tmp_path / "out").exists()


def test_a_table_that_cannot_be_written_is_reported_before_the_simulation(
    falling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = ["simulate", str(falling), "--csv", str(tmp_path / "a.csv"), "--parquet", str(tmp_path / "a.parquet")]
    assert CliRunner().invoke(commands, words).exit_code == ToolError.exit_code
    assert not (tmp_path / "a.csv").exists()


def test_trajectories_as_arrays_have_all_cases_and_nan_where_one_failed(falling: Path, tmp_path: Path) -> None:
    import zarr

    plan = plan_of(falling, tmp_path, "g,mood\n1,0\n2,3\n4,0\n", "trajectories = ['h']\ntrajectory_format = 'zarr'")
    outcome = run_study(plan, tmp_path / "out", scheduler="none")
    group = zarr.open_group(outcome.folder / "trajectories.zarr", mode="r")
    t, h = group["time"][:], group["h"][:]
    np.testing.assert_allclose(h[[0, 2]], 1.0 - 0.5 * np.outer([1.0, 4.0], t**2))
    assert np.isnan(h[1]).all()
    assert not (outcome.folder / "trajectories").exists()
    files = json.loads((outcome.folder / "manifest.json").read_text())["files"]
    assert "trajectories.zarr/h/c/0/0" in files


def commanded(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(commands, ["study", *map(str, words), "--scheduler", "none"])
    return done.exit_code, done.output


def test_what_most_cases_failed_by_is_printed(falling: Path, tmp_path: Path) -> None:
    code, said = commanded(plan_of(falling, tmp_path, "g,mood\n1,0\n2,3\n4,3\n"), "--out", tmp_path / "out")
    assert code == 1
    messages = [message for message in table(tmp_path / "out")["message"] if message]
    assert f"most often: {messages[0]}" in " ".join(said.split())


def test_a_fmu_without_a_plan_is_varied_in_its_parameters(falling: Path, tmp_path: Path) -> None:
    code, said = commanded(falling, "--stop", "1", "--step", "0.1", "--out", tmp_path / "out")
    assert code == 0, said
    assert "Vary by 0.1 of their values: g" in said  # the other parameter is 0: a part of it is nothing
    found = table(tmp_path / "out")
    assert len(found["case"]) == 100
    assert (min(found["g"]), max(found["g"])) == pytest.approx((0.9 * 9.81, 1.1 * 9.81), abs=0.02)
    np.testing.assert_allclose(found["h"], 1.0 - 0.5 * np.array(found["g"]))


def test_options_say_what_a_plan_says(falling: Path, tmp_path: Path) -> None:
    words = (
        *("--vary", "g=1:4:4", "--vary", "push=0,0.5", "--at", "mood=0", "--result", "h:smallest"),
        *(
            "--result",
            "h:first-crossing",
            "--result",
            "h:first-crossing=0.5:falling",
            "--result",
            "v:first-crossing=-1",
        ),
        *("--stop", "1", "--step", "0.1", "--out", tmp_path / "out"),
    )
    assert commanded(falling, *words)[0] == 0
    (tmp_path / "plan.toml").write_text(
        f"fmu = '{falling}'\nstop = 1.0\nstep = 0.1\n[cases]\nmethod = 'grid'\n[set]\nmood = 0\n"
        "[vary]\ng = { from = 1, to = 4, count = 4 }\npush = [0, 0.5]\n"
        "[results]\n'h:smallest' = { of = 'h', take = 'smallest' }\n"
        "'h:first-crossing' = { of = 'h', take = 'first-crossing' }\n"
        "'h:first-crossing=0.5:falling' = { of = 'h', take = 'first-crossing', level = 0.5, direction = 'falling' }\n"
        "'v:first-crossing=-1' = { of = 'v', take = 'first-crossing', level = -1.0 }\n"
    )
    run_study(tmp_path / "plan.toml", tmp_path / "planned", scheduler="none")
    written = [(tmp_path / name / "results.parquet").read_bytes() for name in ("out", "planned")]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--vary", "g"], "g: write NAME=FROM:TO"),
        (["--vary", "g=1:2:3:4"], "g=1:2:3:4: write NAME"),
        (["--vary", "g=1:2", "--vary", "g=2:3"], "each name once"),
        (["--vary", "g=1:2:many"], "'many' is no whole number"),
        (["--vary", "mass=1:2"], "no variable mass"),
        (["--vary", "g=1 kg:2 kg"], "kg"),
        (["--cases", "none.csv"], "none.csv"),
        (["--method", "grid"], "a grid says itself"),
        (["--at", "mood"], "write NAME=VALUE"),
        (["--result", "h:largest=3"], "a level is a number, of first-crossing"),
        (["--result", "h:first-crossing=two"], "results.h:first-crossing=two.level: 'two'"),
        (["--result", "h:largest:rising"], "only first-crossing has a direction"),
    ],
)
def test_options_that_mean_nothing_are_refused(falling: Path, tmp_path: Path, words: list[str], part: str) -> None:
    code, said = commanded(falling, *words, "--out", tmp_path / "out")
    assert code == 2
    assert part in said
    assert not (tmp_path / "out").exists()


def test_options_beside_a_plan_are_refused(tmp_path: Path) -> None:
    code, said = commanded("plan.toml", "--count", "3", "--cases", "c.csv", "--out", tmp_path / "out")
    assert code == 2
    assert "--count, --cases: a plan says this itself" in said.replace("\n", " ") or "--cases, --count" in said


HANGS = """
import sys
from pathlib import Path
import numpy as np
from mb2fmu.pipeline.study_runs.study_run import _prepare_study, _read_plan_file
from mb2fmu.analysis.studies.study_plan import read_study_plan
from mb2fmu.fmu.package.fmu_archive import read_archive
from mb2fmu.fmu.package.atomic_publishing import write_file_tree
from mb2fmu.analysis.studies import study_case_runner
plan, unit, folder = map(Path, sys.argv[1:])
study, _, _ = _prepare_study(plan.parent, read_study_plan(_read_plan_file(plan)), None)
write_file_tree(read_archive(unit), folder)
(folder / "resources").mkdir(exist_ok=True)
study_case_runner._HANGING_GRACE_S = 0.1
runner = study_case_runner.StudyCaseRunner(study.job, folder)
runner.start_call_watchdog()
runner.run(study.cases)
"""


def test_a_call_that_does_not_return_ends_its_process(falling: Path, tmp_path: Path) -> None:
    plan = plan_of(falling, tmp_path, "g,mood\n1,0\n1,2\n", "time_limit = 0.5")
    command = [sys.executable, "-c", HANGS, str(plan), str(falling), str(tmp_path / "unit")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 70


_INTERRUPTIBLE = """
import signal
from mb2fmu.analysis.studies import study_result_store
from mb2fmu.cli import main
study_result_store.FLUSH_INTERVAL_S = 0.1
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs in the background ignore it
    main()
"""


def test_an_interrupted_command_keeps_results_and_leaves_no_process(falling: Path, tmp_path: Path) -> None:
    rows = "g\n" + "\n".join(f"{0.001 * k:.3f}" for k in range(5000)) + "\n"
    plan, out = plan_of(falling, tmp_path, rows), tmp_path / "out"
    command = [sys.executable, "-c", _INTERRUPTIBLE, "study", str(plan), "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        limit = time.monotonic() + 120.0
        while not list(out.glob("parts/part-*")) and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        said = process.communicate(timeout=60)[0].decode()
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert said.rstrip().endswith("mb2fmu: interrupted; the same with --resume goes on")
    assert "Traceback" not in said
    assert children
    _, left = psutil.wait_procs(children, timeout=10.0)
    assert not left
    assert list(out.glob("parts/part-*"))
    assert not list(out.glob(".*.tmp"))


def test_indices_are_there_as_numbers(falling: Path, tmp_path: Path) -> None:
    """At 1 s h = 1 + (push - g)/2: shares of the variance are those of the ranges' squares, 16 : 1."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"fmu = '{falling}'\nstop = 1.0\nstep = 0.1\n[results]\n{FEW}\n"
        "[cases]\nmethod = 'sobol'\ncount = 256\nindices = true\n"
        "[vary]\ng = { from = 8, to = 12 }\npush = { from = 0, to = 1 }\n"
    )
    outcome = run_study(plan, tmp_path / "out", scheduler="none")
    assert "What the results depend on" in outcome.summary.read_text()
    lines = (outcome.folder / "indices.csv").read_text().splitlines()
    assert lines[0].startswith("result,quantity,alone,alone from,alone to,together")
    rows = {line.split(",")[1]: [float(cell) for cell in line.split(",")[2:]] for line in lines[1:]}
    for quantity, share in (("g", 16 / 17), ("push", 1 / 17)):
        alone, low, high, together, least, most = rows[quantity]
        assert low < share < high
        assert least < share < most
        assert alone == pytest.approx(share, abs=0.01)
        assert together == pytest.approx(share, abs=0.01)
        assert f"<td>{quantity}</td><td>{alone:.3f}</td>" in outcome.summary.read_text()


def test_without_indices_there_is_no_file_of_them(falling: Path, tmp_path: Path) -> None:
    outcome = run_study(plan_of(falling, tmp_path, "g\n9.81\n4\n"), tmp_path / "out", scheduler="none")
    assert not (outcome.folder / "indices.csv").exists()
    assert "Sobol" not in outcome.summary.read_text()
