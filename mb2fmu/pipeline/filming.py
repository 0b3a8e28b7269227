"""Films of a drawing: stills at equal times, drawn without a browser, as GIF; WebM and MP4 by ffmpeg where it is."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.errors import Fault, ToolError
from mb2fmu.package.publishing import write_whole
from mb2fmu.scratch import told_of_disk, work_folder

if TYPE_CHECKING:
    from PIL.Image import Image

    from mb2fmu.animation import Drawing

WIDTH = 640
"""Pixels."""
RATE = 20
"""Frames per second; a GIF counts hundredths of a second."""
MOST = 400
"""Frames; a longer motion is shown with fewer of them per second of its own."""
_SHORTEST = 2.0  # s on the screen: what lasts less is shown slowly
_TIME_LIMIT = 600.0


def film(drawing: Drawing, path: Path) -> None:
    """Writes the motion as a film, in real time; what lasts less than 2 s is slowed down to that.

    Args:
        drawing: What moves.
        path: Ends in .gif, .webm or .mp4.

    Raises:
        ToolError: If a WebM or MP4 is asked for and ffmpeg is not there, or fails.
    """
    suffix = path.suffix.lower()
    if suffix != ".gif" and shutil.which("ffmpeg") is None:
        fault = Fault("ffmpeg is not on the PATH", str(path), "install it, write a .gif, or record in the page")
        raise ToolError("the film cannot be made:", [fault])
    pictures = _pictures(drawing)
    if suffix == ".gif":
        write_whole(path, _gif(pictures))
    else:
        write_whole(path, _encoded(pictures, suffix))


def _pictures(drawing: Drawing) -> list[Image]:
    from PIL import Image

    from mb2fmu import animation, package

    first, last = float(drawing.poses.time[0]), float(drawing.poses.time[-1])
    count = int(np.clip(round(max(last - first, _SHORTEST) * RATE), 2, MOST)) if last > first else 1
    pictures = []
    for t in np.linspace(first, last, count).tolist():
        content = package.raster(animation.still(drawing, t, background="#ffffff"), WIDTH)
        pictures.append(Image.open(io.BytesIO(content)).convert("RGB"))
    return pictures


def _gif(pictures: list[Image]) -> bytes:
    """One palette for all frames, so that colours do not flicker."""
    palette = pictures[0].quantize(128)
    frames = [picture.quantize(palette=palette, dither=0) for picture in pictures]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=1000 // RATE, loop=0, optimize=False)
    return file.getvalue()


def _encoded(pictures: list[Image], suffix: str) -> bytes:
    coder = ["-c:v", "libvpx-vp9", "-b:v", "2M"] if suffix == ".webm" else ["-c:v", "libx264", "-movflags", "faststart"]
    with work_folder("make the film") as folder, told_of_disk("make the film"):
        for k, picture in enumerate(pictures):
            picture.crop((0, 0, picture.width // 2 * 2, picture.height // 2 * 2)).save(folder / f"{k:05}.png")
        target = folder / f"film{suffix}"
        command = ["ffmpeg", "-v", "error", "-framerate", str(RATE), "-i", "%05d.png", *coder, "-pix_fmt", "yuv420p"]
        done = subprocess.run(  # noqa: S603  ffmpeg on our own pictures
            [*command, target.name], cwd=folder, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
        )
        if done.returncode != 0:
            raise ToolError("the film cannot be made:", [Fault(done.stderr.strip()[-2000:], "ffmpeg")])
        return target.read_bytes()
