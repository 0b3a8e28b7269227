"""States as bytes: the same bits back, and nothing that is not one's own."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.fmu.emit_python.runtime.failures import RefusedError
from mb2fmu.fmu.emit_python.runtime.state_snapshot import Snapshot, deserialize_fmu_snapshot, serialize_fmu_snapshot

TOKEN = str(uuid.uuid5(uuid.NAMESPACE_OID, "one"))
OTHER = str(uuid.uuid5(uuid.NAMESPACE_OID, "two"))
numbers = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30)


@given(phase=st.integers(0, 3), steps=st.integers(0, 2**64 - 1), values=numbers)
def test_round_trip_keeps_the_bits(phase, steps, values):
    back = deserialize_fmu_snapshot(serialize_fmu_snapshot(Snapshot(phase, steps, values), TOKEN), TOKEN)
    assert (back.phase, back.steps) == (phase, steps)
    assert struct.pack(f"{len(values)}d", *back.numbers) == struct.pack(f"{len(values)}d", *values)


@given(values=numbers, position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(values, position, bit):
    data = bytearray(serialize_fmu_snapshot(Snapshot(1, 7, values), TOKEN))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(RefusedError):
        deserialize_fmu_snapshot(bytes(data), TOKEN)


@given(values=numbers, length=st.integers(0, 10_000))
def test_any_truncation_is_noticed(values, length):
    data = serialize_fmu_snapshot(Snapshot(1, 7, values), TOKEN)
    with pytest.raises(RefusedError):
        deserialize_fmu_snapshot(data[: length % len(data)], TOKEN)


def test_the_state_of_another_fmu_is_refused():
    with pytest.raises(RefusedError, match=OTHER):
        deserialize_fmu_snapshot(serialize_fmu_snapshot(Snapshot(2, 7, [1.0]), OTHER), TOKEN)


def test_another_format_is_refused():
    data = bytearray(serialize_fmu_snapshot(Snapshot(2, 7, [1.0]), TOKEN))
    data[8] = 99
    with pytest.raises(RefusedError, match="format 99"):
        deserialize_fmu_snapshot(bytes(data), TOKEN)
