"""Templates: compiled ones are kept in the cache folder, and used only while they are right."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from mb2fmu.fmu import user_cache
from mb2fmu.fmu.packaged_templates import make_template_environment


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with a template; the cache folder is new."""
    templates = tmp_path / "painted" / "templates"
    templates.mkdir(parents=True)
    (tmp_path / "painted" / "__init__.py").touch()
    (templates / "sign.jinja").write_text("{{ text }}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "cache"))
    yield "painted"
    sys.modules.pop("painted", None)


def render(package: str, *, escape: bool = False) -> str:
    """The sign, by a new environment."""
    return make_template_environment(package, escape=escape).get_template("sign.jinja").render(text="a < b")


def test_a_compiled_template_is_kept_and_read_again(package: str, tmp_path: Path, monkeypatch) -> None:
    assert render(package) == "a < b"
    assert len(list((tmp_path / "cache" / "templates").iterdir())) == 1
    monkeypatch.setattr("jinja2.Environment.compile", None)
    assert render(package) == "a < b"


def test_another_text_and_other_options_are_compiled_anew(package: str, tmp_path: Path) -> None:
    assert render(package) == "a < b"
    assert render(package, escape=True) == "a &lt; b"
    (tmp_path / package / "templates" / "sign.jinja").write_text("[{{ text }}]")
    assert render(package, escape=True) == "[a &lt; b]"


def test_no_cache_folder_is_needed(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = make_template_environment(package)
    shutil.rmtree(tmp_path / "cache")
    assert environment.get_template("sign.jinja").render(text=1) == "1"
    (tmp_path / "file").touch()
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "file"))
    assert render(package) == "a < b"
