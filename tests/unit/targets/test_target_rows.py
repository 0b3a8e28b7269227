"""The rows of the targets: the documentation has them, the files have what they name, and what cannot be is refused."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy.physics.mechanics as me
from source_programs import EMITTERS, TARGETS, Point, missing, run_files

from mb2fmu import Model, pipeline
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout
from mb2fmu.errors import EmitError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.pipeline.fmu_build.target_source_export import TARGET_PRINTERS, print_target_source_files
from mb2fmu.targets import SOURCE_TARGETS, SourceCodeTarget, format_targets_as_markdown
from mb2fmu.targets.csharp import emit_csharp_files
from mb2fmu.targets.fortran import emit_fortran_files
from mb2fmu.targets.julia import emit_julia_file
from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable

ROOT = Path(__file__).parents[3]
ROWS = [pytest.param(row, id=row.name) for row in SOURCE_TARGETS.values()]


@cache
def derivation() -> pipeline.DerivationResult:
    return pipeline.derive(ROOT / "models" / "simple_pendulum.py")


@cache
def files(target: str) -> InMemoryFileTree:
    return print_target_source_files(derivation(), target)


def test_each_row_has_a_printer_and_the_documentation_has_the_tables() -> None:
    assert tuple(TARGET_PRINTERS) == tuple(SOURCE_TARGETS)
    assert format_targets_as_markdown() in (ROOT / "docs" / "reference" / "targets.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS)
def test_the_files_have_the_functions_that_the_row_names(row: SourceCodeTarget) -> None:
    name, tree = derivation().definition.name, files(row.name)
    assert {path.replace("NAME", name) for path in row.files} <= set(tree.files)
    text = b"\n".join(tree.files.values()).decode("utf-8", errors="replace")
    calls = [call.replace("NAME", name) for call in (row.rhs, row.outputs, row.start, row.jacobian, row.step) if call]
    for call in calls:
        called = re.match(r"[\w.]+!?", call)
        assert called, call
        word = called[0].rpartition(".")[2] if "(" in call and call != "der(x) = …" else ""
        assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text), call


@pytest.mark.parametrize("row", ROWS)
def test_the_comments_say_model_and_units(row: SourceCodeTarget) -> None:
    text = b"\n".join(files(row.name).files.values()).decode("utf-8", errors="replace")
    definition = derivation().definition
    assert definition.name in text
    assert "mb2fmu" in text
    for parameter in definition.parameters:
        assert parameter.name in text
        assert parameter.unit in text


def tiny(
    name: str, names: tuple[str, ...] = ("x",), description: str = ""
) -> tuple[ProgramBuilder, TargetModelDescription]:
    b = ProgramBuilder(ProgramVariableLayout(states=names))
    b.entry("rhs", names, [b.neg(b.state(i)) for i in range(len(names))])
    b.entry("outputs", (), ())
    states = tuple(TargetModelVariable(each, "m", 1.0, description=description) for each in names)
    return b, TargetModelDescription(name, description, "a hand", states, (), (), (), 1.0, 0.1, 10, ((),), 1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_unusual_texts_and_missing_vectors_compile(target: str, tmp_path: Path) -> None:
    """Names and descriptions are text of a user's; there may be neither inputs nor parameters nor outputs."""
    if reason := missing(target):
        pytest.skip(reason)
    names = ("a'b\"\\$&{x}", "q[1]*/ ! // #", "grün " + "x" * 150)
    b, model = tiny("Odd", names, "line\nbreak */ 'q' \"$(x)\" \\u0041 & ! \t" + "long " * 40)
    none = np.zeros(0)
    x = np.array([1.0, -2.0, 0.5])
    values = run_files(target, EMITTERS[target](b.build(), model), model, [Point(0.0, x, none, none)], tmp_path)
    np.testing.assert_array_equal(values.dx, [-x])
    assert values.y.shape == (1, 0)


@pytest.mark.parametrize(
    ("emit", "name", "why"),
    [
        (emit_fortran_files, "Rhs", "Fortran needs this name for something else"),
        (emit_fortran_files, "M" * 60, "Fortran allows 58"),
        (emit_fortran_files, "_M", "begins with a letter"),
        (emit_fortran_files, "Aint", "Fortran needs this name for something else"),
        (emit_csharp_files, "CultureInfo", "C# needs this name for something else"),
        (emit_csharp_files, "double", "C# needs this name for something else"),
        (emit_csharp_files, "Minimum", "C# needs this name for something else"),
        (emit_julia_file, "end", "Julia needs this name for something else"),
        (emit_julia_file, "largest", "Julia needs this name for something else"),
    ],
)
def test_names_that_a_language_needs_itself_are_refused(emit, name: str, why: str) -> None:
    b, model = tiny(name)
    with pytest.raises(EmitError, match=re.escape(why)):
        emit(b.build(), model)


def test_nothing_is_written_where_a_name_is_refused(tmp_path: Path) -> None:
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = Model("Outputs", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 2)]))
    model.coordinate(x, 0.0, "m")
    model.speed(v, 1.0, "m/s")
    with pytest.raises(EmitError, match="give the model another name"):
        pipeline.export_target_source_code(pipeline.derive(model), "fortran", tmp_path / "new")
    assert not (tmp_path / "new").exists()
