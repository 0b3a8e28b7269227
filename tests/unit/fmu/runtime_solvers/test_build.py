"""The C code under checkers: undefined behaviour, memory, stack, and sizes of zero."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from native_models.zoo import HERE, RUNTIME, STRICT, available, compiled
from representatives import by_night

SANITIZERS = {
    "zig": ["-fsanitize=undefined", "-fno-sanitize-recover=all", "-O1", "-g"],
    "gcc": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g"],
}
STACK_BUDGET = 1024


@pytest.mark.parametrize("compiler", ["gcc", *by_night("zig")])
@pytest.mark.parametrize("source", ["sanitized.c", "stateless.c"])
def test_sanitizers_find_nothing(tmp_path, compiler, source):
    """Every solver on every problem, with hooks and failures."""
    if not available(compiler):
        pytest.skip(f"there is no {compiler} here")
    program = compiled(compiler, tmp_path / "program", source, *SANITIZERS[compiler])
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_stack(tmp_path):
    """No function of the solvers has large arrays on the stack: hosts give 64 kB."""
    if not available("gcc"):
        pytest.skip("gcc tells the use of the stack; there is none here")
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        command = ["gcc", *STRICT, "-O2", "-fstack-usage", f"-I{RUNTIME}", "-c", str(HERE / "zoo.c"), "-o", "zoo.o"]
        subprocess.run(command, cwd=folder, check=True, timeout=60)
        usage = (Path(folder) / "zoo.su").read_text()
    sizes = {name: int(size) for name, size in re.findall(r":(mb2fmu_\w+|zoo_integrate)\S*\t(\d+)\t", usage)}
    assert "zoo_integrate" in sizes
    assert max(sizes.values()) < STACK_BUDGET
    assert "dynamic\n" not in usage


@pytest.mark.parametrize("path", [*RUNTIME.glob("solver*"), RUNTIME / "cosimulation.c"], ids=lambda path: path.name)
def test_functions_and_files_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) < 500
    for body in re.findall(r"^\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        assert body.count("\n") < 60
    assert "malloc" not in text
    assert max(map(len, text.splitlines())) <= 120
