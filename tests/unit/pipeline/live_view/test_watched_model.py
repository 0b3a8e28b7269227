"""``mb2fmu watch``: what the page shows while a file is edited, who may read it, and that nothing stays."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shorter_validations import PRELUDE

from mb2fmu.pipeline.live_view.watched_model import WatchedModelFile

COMMAND = [sys.executable, "-m", "mb2fmu"]

FALLING = """
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu import Model


def falling() -> Model:
    h, v = me.dynamicsymbols("h v")
    m, N, O = sm.Symbol("m"), me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", h * N.z)
    P.set_vel(N, v * N.z)
    loads = [(P, -9.81 * m * N.z)]
    kane = me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[me.Particle("stone", P, m)], forcelist=loads)
    model = Model("Falling", kane)
    model.parameter(m, 1.0, "kg")
    model.coordinate(h, 1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=0.5)
    return model
"""


def saved(path: Path, text: str) -> None:
    """The file as an editor saves it, later than before."""
    path.write_text(text, encoding="utf-8")
    later = time.time_ns() + 10**9
    os.utime(path, ns=(later, later))


def test_a_wrong_model_is_reported_and_the_last_motion_stays(tmp_path: Path) -> None:
    model_file = tmp_path / "falling.py"
    model_file.write_text(FALLING, encoding="utf-8")
    watched = WatchedModelFile(model_file, tmp_path, validates=False)
    watched.renew()
    first = watched.state
    assert first.version == 1
    assert b"<html" in first.motion
    watched.renew()
    assert watched.state is first  # nothing has changed
    saved(model_file, FALLING.replace("Model(", "Modell("))
    watched.renew()
    assert "falling.py" in watched.state.message
    assert "Modell" in watched.state.message
    assert watched.state.motion == first.motion
    model_file.unlink()  # as some editors do for a moment
    watched.renew()
    saved(model_file, FALLING)
    watched.renew()
    assert (watched.state.message, watched.state.version) == ("", 2)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C reaches a whole console on Windows")
def test_the_command_validates_behind_the_motion_and_leaves_nothing(tmp_path: Path) -> None:
    temporary, model_file, begins = tmp_path / "temporary", tmp_path / "falling.py", tmp_path / "begins"
    temporary.mkdir()
    begins.mkdir()
    (begins / "sitecustomize.py").write_text(PRELUDE)  # of the validation, which is a process of its own
    model_file.write_text(FALLING, encoding="utf-8")
    # A test under nohup ignores SIGINT, and that is inherited. No preexec_fn: JAX may have threads in this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, "watch", str(model_file), "--at", "h=0.3", "--at", "m=2 kg"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join([str(begins), *filter(None, sys.path)])},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        assert found
        port = int(found[1])

        def got(path: str, host: str = f"127.0.0.1:{port}") -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path, headers={"Host": host})
            response = connection.getresponse()
            return response.status, response.read()

        assert got("/", "pages.example")[0] == 403
        assert got("/nothing")[0] == 404
        state = {"verdict": "none"}
        for _ in range(600):
            state = json.loads(got("/state")[1])
            if state["verdict"] in {"good", "bad"}:
                break
            time.sleep(0.1)
        assert state["verdict"] == "good"
        assert "passed" in state["text"]
        assert b"<html" in got("/motion.html")[1]
        report = got("/report.html")[1].decode()
        assert "--at m=2" in re.sub(r"<[^>]+>", "", report).replace("'", "")
        model_file.touch()
        for _ in range(600):
            if json.loads(got("/state")[1])["verdict"] == "pending":
                break
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, ""), out
    assert list(temporary.iterdir()) == []
