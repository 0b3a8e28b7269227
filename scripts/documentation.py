"""What the documentation site generates while it is built: the gallery from models/, the list of decisions.

A hook of mkdocs. ``MB2FMU_ANIMATE`` names the models that are animated: ``all`` (as without it), ``none``, or names
separated by commas.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from mb2fmu import animation, model, pipeline
from mb2fmu.errors import ModelError
from mb2fmu.model.definition import ModelDefinition
from mb2fmu.validation import stored
from mb2fmu.variables import AuxiliaryState, Coordinate, Speed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
CURVES = 4
"""Most curves in a picture."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages and pictures, and puts what is generated into the navigation."""
    from mkdocs.structure.files import File

    for path, content in (*_gallery(), ("decisions/index.md", _decisions())):
        files.append(File.generated(config, path, content=content))
    nav = list(config.nav or [])
    for place, folder in (("Gallery", "gallery"), ("Decisions", "decisions")):
        pages = sorted(f.src_uri for f in files if f.src_uri.startswith(f"{folder}/") and f.src_uri.endswith(".md"))
        pages.sort(key=lambda uri: not uri.endswith("index.md"))
        nav.append({place: pages})
    config.nav = nav
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links to folders and to files outside of the site, which are right where the sources are read."""
    if page.file.src_uri == "index.md":
        markdown = markdown.replace("(decisions/)", "(decisions/index.md)")
        markdown = markdown.replace("gallery of all models", "[gallery of all models](gallery/index.md)")
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:README\.md|LICENSE|models/[^)]*)\)", r"\1", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Docstrings name what they mean as ``:func:`` and the like, which the page shows as code alone."""
    return re.sub(r":(?:attr|class|data|func|meth|mod):(?=<code)", "", html)


def _decisions() -> str:
    """One line per decision."""
    lines = ["# Decisions", "", "What was decided and why, one page each.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def _gallery() -> Iterator[tuple[str, str | bytes]]:
    """Path → content of all that is in the gallery."""
    wanted = os.environ.get("MB2FMU_ANIMATE", "all")
    cards = []
    for path in sorted((ROOT / "models").glob("*.py")):
        definition, name = model.check(model.load(path)), path.stem
        docstring = path.read_text(encoding="utf-8").split('"""')[1]
        title, _, rest = docstring.partition("\n")
        yield f"gallery/{name}.svg", definition.diagram
        yield f"gallery/{name}_motion.svg", _picture(definition, name)
        moving, missing = _animation(path) if wanted == "all" or name in wanted.split(",") else ("", "")
        if moving:
            yield f"gallery/{name}_animation.html", moving
        frame = f"No animation: {missing}." if missing else _frame(definition, name) if moving else ""
        yield f"gallery/{name}.md", _page(definition, name, (title, frame, rest), path)
        cards += [f"- [![{name}]({name}.svg){{ width=150 }}]({name}.md)", ""]
        cards += [f"    [{definition.name}]({name}.md): {title}", ""]
    head = ["# Gallery", "", "Every model of the repository, an FMU of which is made and proven in the tests.", ""]
    yield "gallery/index.md", "\n".join([*head, '<div class="grid cards" markdown>', "", *cards, "</div>"]) + "\n"


def _animation(path: Path) -> tuple[str, str]:
    """The page of a model in motion, or why there is none: a Lagrangian alone, which has no bodies to draw."""
    try:
        drawing, signals = pipeline.animate(path)
    except ModelError as error:
        return "", "; ".join(fault.what for fault in error.faults)
    return animation.page(drawing, signals).decode(), ""


def _frame(definition: ModelDefinition, name: str) -> str:
    """The animation within the model's page."""
    style = "width: 100%; height: 32rem; border: 1px solid #8884"
    return f'<iframe src="{name}_animation.html" title="{definition.name} in motion" style="{style}"></iframe>'


def _page(definition: ModelDefinition, name: str, texts: tuple[str, str, str], path: Path) -> str:
    """The page of one model: its title, its animation, the rest of its docstring, variables, source."""
    title, frame, rest = texts
    experiment = definition.experiment
    parts = [f"# {definition.name}", "", title, "", f"![What the coordinates mean]({name}.svg){{ width=420 }}", ""]
    parts += [frame, ""]
    what = f"The stored reference over the default experiment ({experiment.stop:g} s)"
    parts += [f"![{what}]({name}_motion.svg)", "", rest.strip("\n"), "", "## Variables", ""]
    parts += _table("parameter", "value", _parameters(definition))
    parts += _table("input", "start", ((i.name, f"{i.start:g}", i.unit, i.description) for i in definition.inputs))
    d = definition
    states: list[Coordinate | Speed | AuxiliaryState] = [*d.coordinates, *d.speeds, *d.auxiliary_states]
    rows = ((s.name, f"{s.start:g}", s.unit, s.description) for s in states)
    parts += _table("coordinate, speed or state", "start", rows)
    commands = [f"mb2fmu {command} models/{path.name}" for command in ("run", "animate")]
    parts += ["## Make it", "", "```sh", *commands, "```", ""]
    source = "\n".join("    " + line for line in path.read_text(encoding="utf-8").splitlines())
    parts += [f'??? note "models/{path.name}"', "", "    ```python", source, "    ```", ""]
    return "\n".join(parts)


def _parameters(definition: ModelDefinition) -> Iterator[tuple[str, str, str, str]]:
    for p in definition.parameters:
        yield p.name, str(p.value) if p.calculated else f"{float(p.value):g}", p.unit, p.description


def _table(what: str, value: str, rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    lines = [f"| `{name}` | `{number}` | {unit} | {description} |" for name, number, unit, description in rows]
    if not lines:
        return []
    return [f"| {what} | {value} | unit | |", "|---|---|---|---|", *lines, ""]


def _picture(definition: ModelDefinition, name: str) -> bytes:
    """The first coordinates over time, out of the stored reference; one plot for each unit."""
    trajectory = stored.read(ROOT / "reference" / name)
    by_unit: dict[str, list[str]] = {}
    for coordinate in definition.coordinates:
        by_unit.setdefault(coordinate.unit, []).append(coordinate.name)
    with mpl.rc_context({"svg.hashsalt": "mb2fmu", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(7, 1.9 * len(by_unit) + 0.4), layout="constrained")
        axes = figure.subplots(len(by_unit), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (unit, names) in zip(axes, by_unit.items(), strict=True):
            for each in names[:CURVES]:
                ax.plot(trajectory.time, trajectory.values[:, trajectory.names.index(each)], label=each, linewidth=1.3)
            ax.set_ylabel("1" if unit == "1" else unit)
            ax.grid(alpha=0.3)
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        axes[-1].set_xlabel("time in s")
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    return picture.getvalue()
