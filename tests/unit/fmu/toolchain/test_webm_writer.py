"""WebM films of key frames: read by an own reader of Matroska, decoded by Pillow, compared with the pictures."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageDraw

from mb2fmu.fmu.toolchain.video_encoding import encode_webm

HOLDERS = {0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0, 0x1F43B675, 0x1C53BB6B, 0xBB, 0xB7}
CLUSTER, TIMESTAMP, BLOCK, CLUSTER_POSITION, DURATION, SEGMENT = 0x1F43B675, 0xE7, 0xA3, 0xF1, 0x4489, 0x18538067


def number(content, at, *, marked):
    """(a number of variable length, where it ends); identifiers keep their mark."""
    length = 9 - content[at].bit_length()
    value = int.from_bytes(content[at : at + length], "big")
    return value if marked else value - (1 << 7 * length), at + length


def elements(content, at, end):
    """(identifier, start of the element, its content) of all elements, depth first; each ends within its parent."""
    while at < end:
        start = at
        identifier, at = number(content, at, marked=True)
        size, at = number(content, at, marked=False)
        assert at + size <= end
        yield identifier, start, content[at : at + size]
        if identifier in HOLDERS:
            yield from elements(content, at, at + size)
        at += size
    assert at == end


def decoded(frame):
    """A VP8 key frame in a WebP picture."""
    body = b"WEBPVP8 " + struct.pack("<I", len(frame)) + frame + b"\0" * (len(frame) % 2)
    return Image.open(io.BytesIO(b"RIFF" + struct.pack("<I", len(body)) + body)).convert("RGB")


@pytest.mark.parametrize(("count", "rate"), [(1, 20), (7, 3), (45, 20)])
def test_each_frame_comes_at_its_time(count, rate):
    pictures = []
    for k in range(count):
        picture = Image.new("RGB", (97, 61), "white")
        ImageDraw.Draw(picture).rectangle((k, 10, k + 30, 40), fill=(200, 30, 40))
        pictures.append(picture)
    film = encode_webm(pictures, rate)
    found = list(elements(film, 0, len(film)))
    segment = next(start for identifier, start, _ in found if identifier == SEGMENT) + 12
    times, frames, cluster = [], [], 0
    for identifier, _, content in found:
        if identifier == TIMESTAMP:
            cluster = int.from_bytes(content, "big")
        elif identifier == BLOCK:
            assert (content[0], content[3]) == (0x81, 0x80)
            times.append(cluster + struct.unpack(">h", content[1:3])[0])
            frames.append(decoded(content[4:]))
    assert times == [round(1000 * k / rate) for k in range(count)]
    for frame, picture in zip(frames, pictures, strict=True):
        assert np.abs(np.asarray(frame, int) - np.asarray(picture, int)).mean() < 4
    places = [int.from_bytes(content, "big") for identifier, _, content in found if identifier == CLUSTER_POSITION]
    assert [start - segment for identifier, start, _ in found if identifier == CLUSTER] == places
    (duration,) = (struct.unpack(">d", content)[0] for identifier, _, content in found if identifier == DURATION)
    assert duration == round(1000 * count / rate)
