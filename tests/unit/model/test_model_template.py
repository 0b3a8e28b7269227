"""The model file to start from."""

import pytest

from mb2fmu.errors import ModelError
from mb2fmu.model import check_model, list_models, load
from mb2fmu.model.model_template import write_model_template


@pytest.mark.parametrize("name", ["crane", "My_Robot2", "Model", "sm"])
def test_it_works_as_it_is(tmp_path, name):
    path = write_model_template(name, tmp_path / "new")
    definition = check_model(load(path))
    assert definition.name == "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    assert [state.name for state in (*definition.coordinates, *definition.speeds)] == ["pin.angle", "pin.speed"]
    assert [listed.name for listed in list_models(path.parent)] == [name]


def test_it_never_overwrites(tmp_path):
    path = write_model_template("crane", tmp_path)
    path.write_text("mine")
    with pytest.raises(ModelError, match="there already") as caught:
        write_model_template("crane", tmp_path)
    assert str(path) in str(caught.value)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["", "2nd", "a b", "../x", "class", "größe", "_", "a.py"])
def test_names_that_are_none(tmp_path, name):
    with pytest.raises(ModelError, match="cannot name a model") as caught:
        write_model_template(name, tmp_path)
    assert "my_robot" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="no model was written"):
        write_model_template("crane", tmp_path / "file")
