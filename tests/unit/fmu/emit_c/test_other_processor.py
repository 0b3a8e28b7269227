"""The same bits on another kind of processor: aarch64, emulated by qemu's user mode."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from compiled_c import ARITHMETIC, COMPILERS, RUNTIME, WARNINGS, missing
from kept_compilations import compile_files

PROGRAM = """
#include <inttypes.h>
#include <stdio.h>
#include "elementary.c"
#include "linear_algebra.c"
#include "lookup.c"

static void show(double x)
{
    printf("%016" PRIx64 "\\n", x != x ? 0 : mb2fmu_bits(x));
}

static void show_all(double x, double y)
{
    double sine[3], cosine[3];
    const double angles[3] = {x, 1e3 * x, 1e7 * y};
    mb2fmu_sincos_each(3, angles, sine, cosine);
    for (int i = 0; i < 3; i++) {
        show(sine[i]);
        show(cosine[i]);
    }
    show(mb2fmu_tan(x));
    show(mb2fmu_exp(x));
    show(mb2fmu_log(y));
    show(mb2fmu_pow(y, x));
    show(mb2fmu_asin(x / 3.0));
    show(mb2fmu_acos(x / 3.0));
    show(mb2fmu_atan(x));
    show(mb2fmu_atan2(x, y));
    show(mb2fmu_sinh(x));
    show(mb2fmu_cosh(x));
    show(mb2fmu_tanh(x));
    show(mb2fmu_asinh(x));
    show(mb2fmu_acosh(1.0 + y));
    show(mb2fmu_atanh(x / 3.0));
    show(mb2fmu_erf(x));
}

static void show_solutions(double x, double y)
{
    double a[12] = {x, y, 1.0, 2.0, x + y, 0.5, y, x, 3.0}, right[3] = {x, y, 1.0};
    double b[6] = {5.0, x, 6.0, y, 0.5, 30.0};
    show(mb2fmu_lu_factor(3, a));
    mb2fmu_lu_solve(3, a, right);
    show(mb2fmu_ldlt_factor(3, b));
    mb2fmu_ldlt_solve(3, b, right);
    for (int i = 0; i < 3; i++) {
        show(right[i]);
    }
}

int main(void)
{
    for (int i = 0; i < 400; i++) {
        const double x = 3.0 * (i / 200.0 - 1.0), y = 0.001 + i / 93.0;
        show_all(x, y);
        show_solutions(x, y);
    }
    return 0;
}
"""


def run(folder: Path, target: str, emulator: list[str]) -> str:
    (folder / target).mkdir()
    (folder / target / "main.c").write_text(PROGRAM)
    program = folder / target / "main"
    command = [*COMPILERS["zig"], *WARNINGS, *ARITHMETIC, "-target", target, f"-I{RUNTIME}"]
    command += ["main.c", "-o", "main"]
    compile_files(program.parent, command, time_limit=600)
    return subprocess.run([*emulator, str(program)], capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.slow
def test_aarch64_computes_the_same_bits(tmp_path: Path) -> None:
    reason = missing("zig")
    if reason:
        pytest.skip(reason)
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("qemu-aarch64 (qemu-user) is not installed")
    sysroot = Path("/usr/aarch64-linux-gnu")
    libc = "gnu.2.17" if sysroot.is_dir() else "musl"  # which zig would build first, for a minute
    here = run(tmp_path, f"x86_64-linux-{libc}", [])
    assert len(here.splitlines()) > 8_000
    assert run(tmp_path, f"aarch64-linux-{libc}", [emulator, "-L", str(sysroot)]) == here
