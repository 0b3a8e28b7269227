"""The state of an FMU as bytes: for rollback within a run, and for storage.

Layout, little-endian: 8 bytes ``mb2fmuPy``, format version (u16), token (16 bytes), phase (u8), steps done (u64),
number of doubles (u32), the doubles, CRC-32 of all before (u32). Doubles keep their bits.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from .failures import RefusedError

MAGIC = b"mb2fmuPy"
VERSION = 1
_HEAD = struct.Struct("<8sH16sBQI")
_TAIL = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The complete state of an FMU.

    Attributes:
        phase: Of the life cycle.
        steps: Communication steps done.
        numbers: Everything else, in an order that only the FMU knows.
    """

    phase: int
    steps: int
    numbers: Sequence[float]


def serialize_fmu_snapshot(snapshot: Snapshot, token: str) -> bytes:
    """Return the snapshot as bytes that carry the FMU's token."""
    numbers = snapshot.numbers
    head = _HEAD.pack(MAGIC, VERSION, uuid.UUID(token).bytes, snapshot.phase, snapshot.steps, len(numbers))
    body = head + struct.pack(f"<{len(numbers)}d", *numbers)
    return body + _TAIL.pack(zlib.crc32(body))


def deserialize_fmu_snapshot(data: bytes, token: str) -> Snapshot:
    """Return the snapshot in the bytes.

    Raises:
        RefusedError: If they are damaged, of another format, or the state of another unit.
    """
    if len(data) < _HEAD.size + _TAIL.size or not data.startswith(MAGIC):
        raise RefusedError("these bytes are not the state of an FMU made by mb2fmu")
    magic, version, owner, phase, steps, count = _HEAD.unpack_from(data)
    del magic
    if version != VERSION:
        raise RefusedError(f"the state has format {version}, this FMU reads {VERSION}")
    if owner != uuid.UUID(token).bytes:
        raise RefusedError(f"the state belongs to the FMU with token {uuid.UUID(bytes=owner)}, this one is {token}")
    if len(data) != _HEAD.size + 8 * count + _TAIL.size or _TAIL.unpack(data[-_TAIL.size :])[0] != zlib.crc32(
        data[: -_TAIL.size]
    ):
        raise RefusedError("the state is damaged: length or checksum do not fit")
    return Snapshot(phase, steps, struct.unpack_from(f"<{count}d", data, _HEAD.size))
