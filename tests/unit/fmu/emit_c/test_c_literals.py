"""Numbers and strings as C text."""

from __future__ import annotations

import ctypes
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from compiled_c import compile_library, missing
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.fmu.emit_c.c_literals import format_c_comment, format_c_double, format_c_string


@given(st.floats())
def test_numbers_read_back_to_the_same_bits(value: float) -> None:
    names = {"MB2FMU_INFINITY": math.inf, "MB2FMU_NAN": math.nan}
    back = eval(format_c_double(value), {"__builtins__": {}}, names)
    assert isinstance(back, float)
    assert struct.pack("<d", back) == struct.pack("<d", value) or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_compilers_read_the_same_bits(compiler: str, tmp_path: Path) -> None:
    reason = missing(compiler)
    if reason:
        pytest.skip(reason)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**64, 3_000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], [5e-324, -5e-324, 1.7976931348623157e308, -0.0, 0.1]])
    text = '#include "portability.h"\nextern const double values[];\nconst double values[] = {\n'
    text += ",\n".join(format_c_double(float(value)) for value in values) + "};\n"
    library = ctypes.CDLL(str(compile_library(compiler, tmp_path, text, [])))
    read = np.array((ctypes.c_double * len(values)).in_dll(library, "values"))
    assert read.tobytes() == values.tobytes()


def test_strings_keep_every_character(tmp_path: Path) -> None:
    reason = missing("gcc")
    if reason:
        pytest.skip(reason)
    texts = ["", 'a "quoted" \\ name', "what??!??/ trigraphs", "Größe θ 12", "%s %n", "tab\tand\nline", "'x'[3].der(q)"]
    rows = ",\n".join(format_c_string(text) for text in texts)
    source = f"extern const char *const texts[];\nconst char *const texts[] = {{\n{rows}}};\n"
    library = ctypes.CDLL(str(compile_library("gcc", tmp_path, source, [])))
    read = [item.decode() for item in (ctypes.c_char_p * len(texts)).in_dll(library, "texts")]
    assert read == texts


@given(st.text())
def test_nothing_ends_a_comment_but_its_end(text: str) -> None:
    shown = format_c_comment(text)
    inside = shown[2:-2]
    assert shown.startswith("/* ")
    assert shown.endswith(" */")
    assert "*/" not in inside
    assert "/*" not in inside
    assert "\n" not in inside
    assert "\\" not in inside
