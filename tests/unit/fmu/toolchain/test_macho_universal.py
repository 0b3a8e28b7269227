"""Universal Mach-O files, read back by a library of others."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.fmu.toolchain import fmu_compilation

X86_64 = (0x01000007, 3)
ARM64 = (0x0100000C, 0)


def thin(processor: tuple[int, int], content: bytes) -> bytes:
    return struct.pack("<8I", 0xFEEDFACF, *processor, 6, 0, 0, 0, 0) + content


@given(st.binary(max_size=40_000), st.binary(max_size=40_000))
def test_slices_stay_as_they_are_at_page_boundaries(first: bytes, second: bytes) -> None:
    slices = [thin(X86_64, first), thin(ARM64, second)]
    joined = fmu_compilation.join_universal_binary(slices)
    magic, count = struct.unpack_from(">2I", joined)
    assert (magic, count) == (0xCAFEBABE, 2)
    for number, (processor, content) in enumerate(zip((X86_64, ARM64), slices, strict=True)):
        kind, subtype, start, size, alignment = struct.unpack_from(">5I", joined, 8 + 20 * number)
        assert (kind, subtype) == processor
        assert alignment == (12 if processor == X86_64 else 14)  # page sizes
        assert start % 2**alignment == 0
        assert joined[start : start + size] == content
    assert len(joined) == start + size


@pytest.mark.parametrize(
    "slices", [[b""], [b"\x7fELF" + bytes(60)], [thin(ARM64, b"a"), thin(ARM64, b"b")]], ids=["empty", "elf", "twice"]
)
def test_other_files_are_refused(slices: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"not a thin|of one processor"):
        fmu_compilation.join_universal_binary(slices)
