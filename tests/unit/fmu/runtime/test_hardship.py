"""The shell under hardship (tests/native/hardship.c), plain, under sanitizers and under valgrind."""

import shutil
import subprocess

import pytest
from native.building import HERE, build, compilers
from representatives import by_night

FMI = pytest.mark.parametrize("fmi", [2, 3])
GCC = pytest.mark.skipif("gcc" not in compilers(), reason="sanitizers come with the system's compiler; there is none")


def run(fmi, *arguments, flags=(), before=(), compiler=None):
    """Builds with the flags, runs; what it printed."""
    program = build(fmi, f"-include{HERE / 'hardship.h'}", f"-I{HERE}", *flags, driver="hardship.c", compiler=compiler)
    command = [*before, str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@FMI
def test_many_instances(fmi):
    run(fmi, "many")


@FMI
def test_eight_threads(fmi):
    run(fmi, "threads")


@FMI
@pytest.mark.parametrize("hardship", ["traps", "stack"])
def test_the_same_motion_in_a_hostile_host(fmi, hardship):
    assert run(fmi, hardship) == run(fmi, "plain")


@FMI
def test_every_allocation_may_fail(fmi):
    run(fmi, "memory")


@pytest.mark.parametrize("flags", [(), ("-DHARDSHIP_PRINTF", "-Dsnprintf=hardship_snprintf")], ids=["plain", "locale"])
def test_numbers_in_messages_have_points(flags):
    run(2, "locale", flags=flags)


def test_time_does_not_drift():
    assert run(2, "steps", 500_000).split()[0] == "50000"


@FMI
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_calls_without_rhyme_or_reason(fmi, seed):
    run(fmi, "random", seed, 100_000)


@GCC
@pytest.mark.parametrize("fmi", [*by_night(2), 3])
def test_address_and_undefined_behaviour_sanitizers(fmi):
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    for what in (["plain"], ["traps"], ["stack"], ["many"], ["memory"], ["random", 4, 20_000]):
        run(fmi, *what, flags=flags, compiler="gcc")


@GCC
def test_thread_sanitizer():
    run(3, "threads", flags=("-g", "-fsanitize=thread"), compiler="gcc")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.repeats  # by day the sanitizer of addresses
def test_valgrind():
    valgrind = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=9")
    for what in (["plain"], ["random", 5, 1_000]):
        run(2, *what, before=valgrind)
