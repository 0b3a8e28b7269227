"""Universal ("fat") Mach-O files: code for several processors, one after the other.

Layout: a header of big-endian numbers, magic and count, then processor type, subtype, offset, size and alignment of
each slice; then the slices, unchanged (so that signatures stay valid), at page boundaries. Source: ``mach-o/fat.h`` and
the manual page ``lipo(1)``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_FAT_MAGIC = 0xCAFEBABE
_THIN_MAGIC = 0xFEEDFACF
_X86_64 = 0x01000007
_ALIGNMENT = {_X86_64: 12}
"""Power of 2, the page size: 4 KiB for x86-64."""
_LARGEST = 14
"""That of all others: Arm Macs have pages of 16 KiB."""


def join(slices: Sequence[bytes]) -> bytes:
    """Make one universal file.

    Args:
        slices: Thin 64-bit files of different processors.

    Raises:
        ValueError: If one is not such a file, or two are of one processor.
    """
    processors = [_processor(content) for content in slices]
    if len({kind for kind, _ in processors}) != len(slices):
        raise ValueError("two slices are of one processor")
    header = struct.pack(">2I", _FAT_MAGIC, len(slices))
    used = len(header) + 20 * len(slices)
    body = b""
    for (kind, subtype), content in zip(processors, slices, strict=True):
        alignment = _ALIGNMENT.get(kind, _LARGEST)
        start = _aligned(used + len(body), alignment)
        body += bytes(start - used - len(body)) + content
        header += struct.pack(">5I", kind, subtype, start, len(content), alignment)
    return header + body


def _processor(content: bytes) -> tuple[int, int]:
    """Return type and subtype of the processor."""
    if len(content) < 32 or struct.unpack_from("<I", content)[0] != _THIN_MAGIC:
        raise ValueError("not a thin 64-bit Mach-O file")
    kind, subtype = struct.unpack_from("<2I", content, 4)
    return kind, subtype


def _aligned(size: int, alignment: int) -> int:
    """Return a size rounded up to a multiple of 2^alignment."""
    return -(-size >> alignment) << alignment
