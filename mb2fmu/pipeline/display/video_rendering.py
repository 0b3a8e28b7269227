"""Films of a drawing, without a browser: GIF, WebP, WebM; MP4 by ffmpeg if installed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
from mb2fmu.fmu.toolchain import video_encoding

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from mb2fmu.visualization import Drawing

VIDEO_WIDTH_PIXELS = 640
"""Pixels."""
FRAMES_PER_SECOND = 20
"""Frames per second; a GIF counts hundredths of a second."""
MAX_FRAMES = 400
"""Frames; a longer motion is shown with fewer of them per second of its own."""
_MIN_DURATION_SECONDS = 2.0  # s on the screen: what lasts less is shown slowly


def render_video(drawing: Drawing, path: Path, *, width: int | None = None, most: int | None = None) -> None:
    """Write the motion as a film in real time; motions shorter than 2 s are slowed down to that.

    A WebM is written by ffmpeg where it is, which makes it smaller, and without it of key frames alone.

    Args:
        drawing: What moves.
        path: Ends in .gif, .webp, .webm or .mp4.
        width: Pixels; None: :data:`VIDEO_WIDTH_PIXELS`.
        most: Frames at most, a longer motion then runs faster than its own time; None: :data:`MAX_FRAMES`.

    Raises:
        ToolError: If an MP4 is requested and ffmpeg is not there, or if it fails.
    """
    suffix = path.suffix.lower()
    if suffix == ".mp4":
        video_encoding.require_ffmpeg(str(path))
    pictures = _draw_frames(drawing, width or VIDEO_WIDTH_PIXELS, most or MAX_FRAMES)
    if suffix == ".gif":
        content = _encode_gif(pictures)
    elif suffix == ".webp":
        content = _encode_webp(pictures)
    elif suffix == ".webm" and not video_encoding.has_ffmpeg():
        content = video_encoding.encode_webm(pictures, FRAMES_PER_SECOND)
    else:
        content = video_encoding.encode_video(
            [_encode_even_sized_png(picture) for picture in pictures], suffix, FRAMES_PER_SECOND
        )
    write_file_atomically(path, content)


def _draw_frames(drawing: Drawing, width: int, most: int) -> list[Picture]:
    """Draw the stills of a film at equal times, `most` at most; one where nothing lasts."""
    from PIL.PngImagePlugin import PngImageFile

    from mb2fmu import visualization
    from mb2fmu.fmu import package

    first, last = float(drawing.poses.time[0]), float(drawing.poses.time[-1])
    count = (
        int(np.clip(round(max(last - first, _MIN_DURATION_SECONDS) * FRAMES_PER_SECOND), 2, most))
        if last > first
        else 1
    )
    documents = visualization.render_video_frames(
        drawing, np.linspace(first, last, count).tolist(), background="#ffffff"
    )
    contents = [package.rasterize_svg(document, width) for document in documents]
    return [PngImageFile(io.BytesIO(content)).convert("RGB") for content in contents]


def _encode_gif(pictures: list[Picture]) -> bytes:
    """Write a GIF with one palette for all frames, so that colours do not flicker."""
    from PIL import Image

    palette = pictures[0].quantize(128)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file = io.BytesIO()
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=1000 // FRAMES_PER_SECOND, loop=0, optimize=False
    )
    return file.getvalue()


def _encode_webp(pictures: list[Picture]) -> bytes:
    """Write a WebP: smaller than a GIF, and with all colours."""
    file = io.BytesIO()
    settings = {"duration": 1000 // FRAMES_PER_SECOND, "loop": 0, "quality": 70, "method": 4, "minimize_size": True}
    pictures[0].save(file, "WEBP", save_all=True, append_images=pictures[1:], **settings)
    return file.getvalue()


def _encode_even_sized_png(picture: Picture) -> bytes:
    """Return a PNG of even width and height, as films need it."""
    file = io.BytesIO()
    picture.crop((0, 0, picture.width // 2 * 2, picture.height // 2 * 2)).save(file, "PNG")
    return file.getvalue()
