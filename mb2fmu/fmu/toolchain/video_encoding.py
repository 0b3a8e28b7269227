"""Films of pictures, by the ffmpeg of the machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from mb2fmu.errors import Fault, ToolError
from mb2fmu.temporary_files import make_work_folder, report_disk_failure

_ACTION = "make the film"
_ENCODER_TIME_LIMIT_S = 600.0
_ENCODER_OPTIONS = {
    ".webm": ("-c:v", "libvpx-vp9", "-b:v", "2M"),
    ".mp4": ("-c:v", "libx264", "-movflags", "faststart"),
}


def has_ffmpeg() -> bool:
    """Return whether this machine has ffmpeg."""
    return shutil.which("ffmpeg") is not None


def require_ffmpeg(path: str) -> None:
    """Raise where there is no ffmpeg.

    Raises:
        ToolError: Naming ``path`` and what to do.
    """
    if not has_ffmpeg():
        fault = Fault("ffmpeg is not on the PATH", path, "install it, or write a .webm or .gif, which need none")
        raise ToolError("the film cannot be made:", [fault])


def encode_video(pictures: Sequence[bytes], suffix: str, rate: int) -> bytes:
    """Return a film of PNGs.

    Args:
        pictures: Of one size, even in width and height.
        suffix: ``.webm`` or ``.mp4``.
        rate: Frames per second.

    Raises:
        ToolError: If ffmpeg fails, with what it said; or there is no such film.
    """
    if suffix not in _ENCODER_OPTIONS:
        raise ToolError("the film cannot be made:", [Fault(f"there is no film {suffix}", "", "take .gif, .webm, .mp4")])
    with make_work_folder(_ACTION) as folder, report_disk_failure(_ACTION):
        for k, picture in enumerate(pictures):
            (folder / f"{k:05}.png").write_bytes(picture)
        words = ["ffmpeg", "-v", "error", "-framerate", str(rate), "-i", "%05d.png", *_ENCODER_OPTIONS[suffix]]
        target = folder / f"film{suffix}"
        done = subprocess.run(  # noqa: S603  ffmpeg on our own pictures
            [*words, "-pix_fmt", "yuv420p", target.name],
            cwd=folder, capture_output=True, text=True, timeout=_ENCODER_TIME_LIMIT_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ToolError("the film cannot be made:", [Fault(done.stderr.strip()[-2000:], "ffmpeg")])
        return target.read_bytes()
