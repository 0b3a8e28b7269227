"""Videos of pictures: by the ffmpeg of the machine, or as WebM without any video encoder.

WebM is Matroska (RFC 9559); all frames are VP8 key frames, taken from WebP.
"""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mb2fmu.errors import Fault, ToolError, make_tool_failure_fault
from mb2fmu.temporary_files import make_temporary_folder, translate_disk_errors

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


_ACTION = "make the film"
_ENCODER_TIME_LIMIT_S = 600.0
_WITHOUT_FFMPEG = "write a .gif, which needs no ffmpeg"
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
        ToolError: If ffmpeg fails or does not finish; or there is no such film.
    """
    if suffix not in _ENCODER_OPTIONS:
        raise ToolError("the film cannot be made:", [Fault(f"there is no film {suffix}", "", "take .gif, .webm, .mp4")])
    with make_temporary_folder(_ACTION) as folder, translate_disk_errors(_ACTION):
        for k, picture in enumerate(pictures):
            (folder / f"{k:05}.png").write_bytes(picture)
        words = ["ffmpeg", "-v", "error", "-framerate", str(rate), "-i", "%05d.png", *_ENCODER_OPTIONS[suffix]]
        target = folder / f"film{suffix}"
        try:
            done = subprocess.run(  # noqa: S603  ffmpeg on our own pictures
                [*words, "-pix_fmt", "yuv420p", target.name], cwd=folder, capture_output=True,
                text=True, errors="replace", timeout=_ENCODER_TIME_LIMIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            fault = Fault(f"ffmpeg did not finish within {_ENCODER_TIME_LIMIT_S:g} s", remedy=_WITHOUT_FFMPEG)
            raise ToolError("the film cannot be made:", [fault]) from error
        if done.returncode != 0:
            encoder = _ENCODER_OPTIONS[suffix][1]
            missing = f"install an ffmpeg with the encoder {encoder}, or " if "encoder" in done.stderr.lower() else ""
            fault = make_tool_failure_fault("ffmpeg", done.returncode, done.stderr, missing + _WITHOUT_FFMPEG)
            raise ToolError("the film cannot be made:", [fault])
        return target.read_bytes()


_EBML, _SEGMENT, _INFO, _TRACKS, _TRACK, _VIDEO = 0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0
_CLUSTER, _TIMESTAMP, _BLOCK = 0x1F43B675, 0xE7, 0xA3
_CUES, _POINT, _TIME, _POSITIONS, _OF_TRACK, _AT = 0x1C53BB6B, 0xBB, 0xB3, 0xB7, 0xF7, 0xF1
_KEY_FRAME_FLAG = 0x80
_NANOSECONDS_PER_MS = 1_000_000  # ns
_WRITER_NAME = b"mb2fmu"

_EbmlValue = tuple[int, int | float | bytes]
"""Identifier and content of an element."""


def encode_webm(pictures: Sequence[Picture], rate: int, *, quality: int = 80) -> bytes:
    """Return a film of pictures of one size; the same bytes for the same pictures.

    Larger than a video encoder's, since no frame is stored as its difference from the one before.

    Args:
        pictures: In RGB, at least one, at most 16383 pixels wide and high.
        rate: Frames per second.
        quality: Of each picture, 0 to 100.
    """
    times = [round(1000 * k / rate) for k in range(len(pictures) + 1)]
    width, height = pictures[0].size
    facts: list[_EbmlValue] = [
        (0x2AD7B1, _NANOSECONDS_PER_MS),
        (0x4489, float(times[-1])),
        (0x4D80, _WRITER_NAME),
        (0x5741, _WRITER_NAME),
    ]
    video = _encode_master_element(_VIDEO, [(0xB0, width), (0xBA, height)])
    track: list[_EbmlValue] = [
        (0xD7, 1),
        (0x73C5, 1),
        (0x83, 1),
        (0x9C, 0),
        (0x86, b"V_VP8"),
        (0x23E383, times[1] * _NANOSECONDS_PER_MS),
    ]
    header = _encode_master_element(_INFO, facts) + _encode_element(
        _TRACKS, _encode_element(_TRACK, _encode_elements(track) + video)
    )
    body, points = bytearray(header), []
    for first in range(0, len(pictures), rate):
        start = times[first]
        points.append(
            _encode_element(
                _POINT, _encode_elements([(_TIME, start)]) + _encode_element(_POSITIONS, _cue_points(len(body)))
            )
        )
        blocks = _frame_blocks(pictures[first : first + rate], [t - start for t in times[first:]], quality)
        body += _encode_element(_CLUSTER, _encode_elements([(_TIMESTAMP, start)]) + blocks)
    body += _encode_element(_CUES, b"".join(points))
    versions: list[_EbmlValue] = [
        (0x4286, 1),
        (0x42F7, 1),
        (0x42F2, 4),
        (0x42F3, 8),
        (0x4282, b"webm"),
        (0x4287, 4),
        (0x4285, 2),
    ]
    return _encode_master_element(_EBML, versions) + _encode_element(_SEGMENT, bytes(body))


def _cue_points(cluster: int) -> bytes:
    """Return the positions of the clusters of the only track within the segment."""
    return _encode_elements([(_OF_TRACK, 1), (_AT, cluster)])


def _frame_blocks(pictures: Iterable[Picture], times: Iterable[int], quality: int) -> bytes:
    """Return frames of one cluster; times in ms from its own."""
    found = bytearray()
    for picture, time in zip(pictures, times, strict=False):
        found += _encode_element(
            _BLOCK, b"\x81" + struct.pack(">hB", time, _KEY_FRAME_FLAG) + _extract_vp8_frame(picture, quality)
        )
    return bytes(found)


def _extract_vp8_frame(picture: Picture, quality: int) -> bytes:
    """Return the VP8 key frame within a lossy WebP picture (RFC 9649, section 2.5)."""
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=quality, method=4)
    content, at = file.getvalue(), 12
    while content[at : at + 4] != b"VP8 ":
        (size,) = struct.unpack_from("<I", content, at + 4)
        at += 8 + size + size % 2
    (size,) = struct.unpack_from("<I", content, at + 4)
    return content[at + 8 : at + 8 + size]


def _encode_master_element(identifier: int, values: Sequence[_EbmlValue]) -> bytes:
    """Return an element that holds others."""
    return _encode_element(identifier, _encode_elements(values))


def _encode_elements(values: Iterable[_EbmlValue]) -> bytes:
    """Return elements side by side: whole numbers, numbers, bytes."""
    found = bytearray()
    for identifier, value in values:
        if isinstance(value, int):
            value = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")  # noqa: PLW2901
        elif isinstance(value, float):
            value = struct.pack(">d", value)  # noqa: PLW2901
        found += _encode_element(identifier, value)
    return bytes(found)


def _encode_element(identifier: int, content: bytes) -> bytes:
    """Return identifier, size in eight bytes or one, content."""
    size = len(content)
    length = bytes([0x80 | size]) if size < 0x7F else ((1 << 56) | size).to_bytes(8, "big")
    return identifier.to_bytes((identifier.bit_length() + 7) // 8, "big") + length + content
