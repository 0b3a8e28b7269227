"""Model files: what is found in them, and what is said about bad ones."""

import sys
import textwrap
from pathlib import Path

import pytest

from mb2fmu.errors import ModelError
from mb2fmu.model import list_models, load

GOOD = '''
"""A mass on a spring.

More about it.
"""
import sympy as sm
import sympy.physics.mechanics as me
from mb2fmu.model import Model, Parts

def spring(stiffness: float = 2.0, count: int = 3, stiff: bool = False, label: str = "spring") -> Model:
    q, u = me.dynamicsymbols("q u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    parts = Parts(
        frame=N, origin=O, q=[q], u=[u], kinematic_equations=[q.diff() - u],
        bodies=[me.Particle("mass", P, 1)], loads=[(P, -stiffness * q * N.x)],
    )
    model = Model("Spring", parts, description=f"{stiffness!r} {count!r} {stiff!r} {label!r}")
    model.coordinate(q, 1.0, "m")
    model.speed(u, 0.0, "m/s")
    return model
'''


@pytest.fixture
def written(tmp_path):
    """Writes a model file."""

    def write(text, name="spring.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


def refusal(path, arguments=None):
    """The error that loading raises."""
    with pytest.raises(ModelError) as caught:
        load(path, arguments)
    return caught.value


def test_the_one_function_is_called(written):
    path = written(GOOD)
    model = load(path)
    assert model.name == "Spring"
    assert model.source == path.resolve()
    assert model.description == "2.0 3 False 'spring'"
    assert model.declared[0].where.startswith("spring.py:")


def test_arguments_take_the_type_of_the_default(written):
    model = load(written(GOOD), {"stiffness": "5", "count": "7", "stiff": "yes", "label": "9"})
    assert model.description == "5.0 7 True '9'"
    assert load(written(GOOD), {"stiffness": 4, "count": 2}).description.startswith("4.0 2 ")


def test_nothing_of_the_import_is_left(written, tmp_path):
    written("STIFFNESS = 7.0", "beside_it.py")
    path = written(
        "from beside_it import STIFFNESS\n" + GOOD.replace("stiffness: float = 2.0", "stiffness: float = STIFFNESS")
    )
    before, modules = list(sys.path), set(sys.modules)
    assert load(path).description.startswith("7.0")
    assert sys.path == before
    assert set(sys.modules) == modules
    assert not (tmp_path / "__pycache__").exists()


def test_two_files_of_one_name_are_two_models(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "value.py").write_text(f"LABEL = {folder!r}")
        text = "from value import LABEL\n" + GOOD.replace('label: str = "spring"', "label: str = LABEL")
        (tmp_path / folder / "model.py").write_text(text)
    descriptions = [load(tmp_path / folder / "model.py").description for folder in ("a", "b")]
    assert [text[-3:] for text in descriptions] == ["'a'", "'b'"]


def test_an_edited_file_is_read_again(written):
    load(written(GOOD))
    assert load(written(GOOD.replace("2.0", "3.0"))).description.startswith("3.0")


def test_a_missing_file(written):
    path = written(GOOD)
    error = refusal(path.with_name("sprin.py"))
    assert "there is no such file" in str(error)
    assert f"did you mean {path}?" in error.faults[0].remedy


def test_a_file_that_is_no_python(written):
    assert "a model file ends in .py" in str(refusal(written(GOOD, "spring.txt")))


def test_a_folder_is_no_model_file(tmp_path):
    assert "a model file ends in .py" in str(refusal(tmp_path))


@pytest.mark.parametrize("raising", ["raise KeyError('lost')", "import sys; sys.exit(3)", "1 / 0"])
def test_a_file_that_raises_on_import(written, raising):
    error = refusal(written(f"x = 1\n{raising}\n"))
    assert error.headline == "spring.py raises an error when it is imported:"
    assert error.faults[0].where == "spring.py:2"
    assert error.faults[0].what.split(":")[0] in {"KeyError", "SystemExit", "ZeroDivisionError"}
    assert "Traceback" not in str(error)


def test_a_file_whose_neighbour_raises(written):
    written("\n\nraise ValueError('in here')", "neighbour.py")
    error = refusal(written("import neighbour"))
    assert error.faults[0].where == "neighbour.py:3"
    assert "ValueError: in here" in str(error)


def test_a_file_that_is_not_even_syntax(written):
    error = refusal(written("x = 1\ny = = 2\n"))
    assert "no Python that can be read" in error.headline
    assert error.faults[0].where == "spring.py:2"


def test_an_import_that_does_not_exist(written):
    error = refusal(written("import no_such_module_anywhere"))
    assert "no_such_module_anywhere" in error.faults[0].what
    assert error.faults[0].where == "spring.py:1"


def test_no_model_function(written):
    error = refusal(written("def build():\n    return 1\n\n\ndef more():\n    return 2\n"))
    assert "has no model functions" in error.headline
    assert "there are build, more" in error.faults[0].what
    assert "-> Model" in error.faults[0].remedy


def test_helpers_that_take_arguments_do_not_hide_the_function(written):
    path = written(GOOD.replace(" -> Model", "") + "\n\ndef bump(s):\n    return s\n")
    assert load(path).name == load(written(GOOD)).name


def test_a_function_without_annotation_is_found_if_it_is_alone(written, tmp_path):
    path = written(GOOD.replace(" -> Model", ""))
    assert load(path).name == load(written(GOOD, "again.py")).name
    assert "spring" in [listed.name for listed in list_models(tmp_path)]
    error = refusal(written("def build():\n    return 1\n"))
    assert "build returned an int, not a Model" in error.faults[0].what or "a int" in error.faults[0].what


def test_models_that_come_along_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load("double_pendulum").name == "DoublePendulum"
    Path("double_pendulum.py").write_text(GOOD)  # one of the user's own comes first
    assert load("double_pendulum").name != "DoublePendulum"
    with pytest.raises(ModelError, match="did you mean cart_pole"):
        load("cart_poll")


def test_imported_and_private_functions_are_none(written):
    written(GOOD, "other.py")
    text = "from other import spring\nfrom mb2fmu.model import Model\ndef _build() -> Model: ...\n"
    assert "has no model functions" in refusal(written(text)).headline


def test_two_model_functions(written):
    error = refusal(written(GOOD + "\ndef other() -> 'Model':\n    return spring()\n"))
    assert "has 2 model functions" in error.headline
    assert [fault.what.split()[0] for fault in error.faults] == ["spring", "other"]
    assert all(fault.where.startswith("spring.py:") for fault in error.faults)
    assert "underscore" in error.faults[-1].remedy


def test_a_parameter_without_default(written):
    error = refusal(
        written(
            GOOD.replace("count: int = 3", "count: int").replace(
                "stiffness: float = 2.0, count: int", "count: int, stiffness: float = 2.0"
            )
        )
    )
    assert "parameter count of spring has no default" in str(error)
    assert error.faults[0].where.startswith("spring.py:")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"stifness": "1"}, "did you mean stiffness"),
        ({"zzz": "1"}, "it takes stiffness, count"),
        ({"arrays": "true"}, r"a model declares arrays by itself:  model.array"),
        ({"stiffness": "soft"}, "argument stiffness=soft: it must be a number"),
        ({"count": "2.5"}, "argument count=2.5: it must be a whole number"),
        ({"stiff": "perhaps"}, "it must be true or false"),
        ({"count": 2.5}, "a float is no int"),
    ],
)
def test_arguments_that_do_not_fit(written, arguments, says):
    assert says in str(refusal(written(GOOD), arguments))


def test_all_arguments_are_judged_at_once(written):
    assert len(refusal(written(GOOD), {"zzz": "1", "count": "x", "stiff": "y"}).faults) == 3


def test_a_default_that_text_cannot_give(written):
    error = refusal(written(GOOD.replace("count: int = 3", "count: object = (1, 2)")), {"count": "1"})
    assert "a tuple cannot be given as text" in str(error)


def test_faults_of_parts_are_reported_as_they_are(written):
    error = refusal(written(GOOD.replace('bodies=[me.Particle("mass", P, 1)]', "bodies=[P]")))
    assert "P cannot stand in bodies" in error.faults[0].what
    assert error.faults[0].where.startswith("spring.py:")


def test_a_function_that_raises(written):
    error = refusal(written(GOOD.replace("    return model", "    raise RuntimeError('no luck')")))
    assert "cannot be built from spring.py" in error.headline
    assert "RuntimeError: no luck" in error.faults[0].what
    assert error.faults[0].where.startswith("spring.py:")


@pytest.mark.parametrize(("returned", "says"), [("None", "returned nothing"), ("model.name", "returned a str")])
def test_a_function_that_returns_something_else(written, returned, says):
    assert says in str(refusal(written(GOOD.replace("return model", f"return {returned}"))))


def test_models_are_listed_without_running_them(written, tmp_path):
    written(GOOD.lstrip().replace("import sympy as sm", "raise SystemExit"))
    written("def helper(): ...", "helper.py")
    written('import mb2fmu\ndef build() -> mb2fmu.Model:\n    """Of the function."""\n', "a_model.py")
    written("x = = 1", "broken.py")
    listed = [(model.name, model.summary) for model in list_models(tmp_path)]
    assert listed[0] == ("a_model", "Of the function.")
    assert listed[1][0] == "broken"
    assert "line 1" in listed[1][1]
    assert listed[2] == ("spring", "A mass on a spring.")
    assert len(listed) == 3


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(ModelError, match="no such folder"):
        list_models(tmp_path / "nowhere")
