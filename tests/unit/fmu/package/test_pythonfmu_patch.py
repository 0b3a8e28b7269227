"""pythonfmu's Linux binary: one byte of it is replaced, and only where it is known."""

from pathlib import Path

import lief
import pytest
import pythonfmu

from mb2fmu.errors import PackageError
from mb2fmu.fmu.package.python_fmu import PATCHED_FUNCTION, patch_interpreter_finalization

LIBRARY = Path(pythonfmu.__file__).parent / "resources" / "binaries" / "linux64" / "libpythonfmu-export.so"


def test_the_function_returns_at_once_and_all_else_stays():
    before = LIBRARY.read_bytes()
    after = patch_interpreter_finalization(before)
    assert len(after) == len(before)
    (place,) = (k for k in range(len(before)) if before[k] != after[k])
    binary = lief.ELF.parse(list(after))
    address = binary.get_dynamic_symbol(PATCHED_FUNCTION.decode()).value
    landing = bytes(binary.get_content_from_virtual_address(address, 4)) == b"\xf3\x0f\x1e\xfa"
    assert binary.virtual_address_to_offset(address) + 4 * landing == place
    assert after[place] == 0xC3
    assert patch_interpreter_finalization(after) == after


@pytest.mark.parametrize(
    ("library", "what"),
    [
        (b"MZ" + bytes(100), "no shared library"),
        (LIBRARY.read_bytes()[:18] + b"\xb7\0" + LIBRARY.read_bytes()[20:], "no shared library"),  # another processor
        (LIBRARY.read_bytes().replace(PATCHED_FUNCTION, PATCHED_FUNCTION[::-1]), "0 functions"),
    ],
    ids=["windows", "aarch64", "unknown"],
)
def test_another_library_is_refused(library, what):
    with pytest.raises(PackageError, match=what) as caught:
        patch_interpreter_finalization(library)
    assert "reinstall" in str(caught.value)
