"""What is said when a program that mb2fmu runs fails: what happened, its last line, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mb2fmu.audit import external_checkers
from mb2fmu.audit.behaviour.instance.auditor_build_cache import run_setup_command
from mb2fmu.errors import ToolError
from mb2fmu.fmu.toolchain import video_encoding

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the program is a script of the shell")


@linux
@pytest.mark.parametrize(
    ("script", "expected", "remedy"),
    [
        ("echo first >&2; echo 'Unknown encoder x' >&2; exit 8",
         "ffmpeg failed (exit code 8); its last line is: Unknown encoder x",
         "install an ffmpeg with the encoder libx264, or write a .gif"),
        ("kill -9 $$", "ffmpeg failed (killed by SIGKILL); it wrote nothing", "write a .gif, which needs no ffmpeg"),
        ("exec sleep 20", "ffmpeg did not finish within 0.1 s", "write a .gif"),
    ],
)  # fmt: skip
def test_a_film_that_ffmpeg_does_not_make(script, expected, remedy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(video_encoding, "_ENCODER_TIME_LIMIT_S", 0.1 if "sleep" in script else 60.0)
    with pytest.raises(ToolError) as caught:
        video_encoding.encode_video([b"picture"], ".mp4", 25)
    (fault,) = caught.value.faults
    assert fault.what == expected
    assert fault.remedy.startswith(remedy)


def test_a_checker_without_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(external_checkers, "_FMPY_SCRIPT", "print('one'); print('two'); raise SystemExit(3)")
    with pytest.raises(ToolError, match="gave no verdict") as caught:
        external_checkers.check_with_fmpy(tmp_path / "x.fmu")
    (fault,) = caught.value.faults
    assert fault.what.endswith("failed (exit code 3); its last line is: two")
    assert "install fmpy anew" in fault.remedy


def test_a_host_that_is_not_set_up():
    command = [sys.executable, "-c", "import sys; sys.exit('no display')"]
    with pytest.raises(ToolError, match="wine does not end") as caught:
        run_setup_command(command, {}, "wine does not end", "install wine anew")
    (fault,) = caught.value.faults
    assert fault.what.endswith("failed (exit code 1); its last line is: no display")
    assert fault.remedy == "install wine anew"
