"""What is published: versions that agree, absolute links, a wheel with its models."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import yaml

import mb2fmu

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "publishable.py"))
ADDRESS = "https://example.org/someone/mb2fmu"


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert project["version"] == mb2fmu.__version__ == citation[1]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_importing_page_names_the_versions_that_the_tests_run():
    page = (ROOT / "docs" / "how_to" / "importing.md").read_text()
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE))
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.endswith("| every commit |")}
    packages = {"FMPy": "fmpy", "CasADi": "casadi", "ecos": "ecospy", "libcosim": "libcosimpy"}
    for row, line in rows.items():
        name = re.match(r"\[(\w+)\]", row)[1]
        assert locked[packages[name]] in line, line
    assert len(rows) == len(packages)


def test_addresses_are_put_in_at_release():
    before = (ROOT / "pyproject.toml").read_text()
    after = tomllib.loads(SCRIPT["with_address"](before, ADDRESS, "v1"))
    assert after["project"].pop("urls")["Changelog"] == f"{ADDRESS}/blob/v1/CHANGELOG.md"
    assert after == tomllib.loads(before)


def test_links_of_the_readme_become_absolute():
    readme = SCRIPT["with_absolute_links"]((ROOT / "README.md").read_text(), ADDRESS, "v1")
    targets = re.findall(r"\]\(([^)\s]+)", readme)
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert "![" not in readme or re.search(rf"!\[[^\]]*\]\({ADDRESS}/raw/v1/docs/pictures/", readme)
    assert f"[Importing]({ADDRESS}/blob/v1/docs/how_to/importing.md)" in readme


def test_the_wheel_takes_the_models_along():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["force-include"] == {"models": "mb2fmu/shipped_models"}
    assert all(pattern.startswith("/") for pattern in build["sdist"]["include"])


CONDA_NAMES = {"lief": "py-lief"}


def test_the_recipe_for_conda_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "scripts" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert recipe["context"]["version"] == project["version"]
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    wanted = {re.sub(r"(?=[>=])", " ", text, count=1) for text in project["dependencies"]}
    renamed = {" ".join([CONDA_NAMES.get(text.split()[0], text.split()[0]), text.split()[1]]) for text in wanted}
    assert set(recipe["requirements"]["run"][1:]) == renamed
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["license_file"] == project["license-files"]
    assert all((ROOT / path).is_file() for path in project["license-files"])
