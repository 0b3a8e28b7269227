"""Films of a drawing: stills at equal times, drawn without a browser, as GIF; WebM and MP4 by ffmpeg where it is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.package.publishing import write_whole
from mb2fmu.toolchain import film_encoding

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from mb2fmu.animation import Drawing

WIDTH = 640
"""Pixels."""
RATE = 20
"""Frames per second; a GIF counts hundredths of a second."""
MOST = 400
"""Frames; a longer motion is shown with fewer of them per second of its own."""
_SHORTEST = 2.0  # s on the screen: what lasts less is shown slowly


def film(drawing: Drawing, path: Path) -> None:
    """Writes the motion as a film, in real time; what lasts less than 2 s is slowed down to that.

    Args:
        drawing: What moves.
        path: Ends in .gif, .webm or .mp4.

    Raises:
        ToolError: If a WebM or MP4 is asked for and ffmpeg is not there, or fails.
    """
    suffix = path.suffix.lower()
    if suffix != ".gif":
        film_encoding.refuse_without_ffmpeg(str(path))
    pictures = _pictures(drawing)
    if suffix == ".gif":
        write_whole(path, _gif(pictures))
    else:
        write_whole(path, film_encoding.encoded([_even(picture) for picture in pictures], suffix, RATE))


def _pictures(drawing: Drawing) -> list[Picture]:
    from PIL.PngImagePlugin import PngImageFile

    from mb2fmu import animation, package

    first, last = float(drawing.poses.time[0]), float(drawing.poses.time[-1])
    count = int(np.clip(round(max(last - first, _SHORTEST) * RATE), 2, MOST)) if last > first else 1
    pictures = []
    for t in np.linspace(first, last, count).tolist():
        content = package.raster(animation.still(drawing, t, background="#ffffff"), WIDTH)
        pictures.append(PngImageFile(io.BytesIO(content)).convert("RGB"))
    return pictures


def _gif(pictures: list[Picture]) -> bytes:
    """One palette for all frames, so that colours do not flicker."""
    from PIL import Image

    palette = pictures[0].quantize(128)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=1000 // RATE, loop=0, optimize=False)
    return file.getvalue()


def _even(picture: Picture) -> bytes:
    """A PNG of even width and height, as films need it."""
    file = io.BytesIO()
    picture.crop((0, 0, picture.width // 2 * 2, picture.height // 2 * 2)).save(file, "PNG")
    return file.getvalue()
