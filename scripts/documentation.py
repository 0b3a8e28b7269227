"""What the documentation site generates while it is built: the gallery from models/, the list of decisions.

A hook of mkdocs. Two environment variables make the build shorter. ``MB2FMU_GALLERY`` names the models that the gallery
shows, ``MB2FMU_ANIMATE`` those that are animated: ``all`` (as without it), ``none``, or names separated by commas.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import sympy as sm
from matplotlib.figure import Figure

from mb2fmu import model, pipeline, visualization
from mb2fmu.errors import ModelError
from mb2fmu.mechanics import mechanism
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.model.supported_functions import StickingSign
from mb2fmu.pipeline.display.video_rendering import render_video
from mb2fmu.pipeline.run_and_report.notebook_displays import HEIGHT_RECEIVER_SCRIPT, add_page_height_reporting
from mb2fmu.validation.reference import reference_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
CURVES = 4
"""Most curves in a picture."""
LIMITS_FIRST, DECISIONS_LAST = 6.0, 0.2
"""How much more than other pages these weigh in the search."""
THUMBNAIL, FRAMES = 240, 60
"""Width of the gallery's films in pixels, and the most frames that they have."""


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
    """Links to folders and to files outside of the site, which are right where the sources are read.

    The search puts what is there, and what is not, before what was decided.
    """
    if page.file.src_uri == "reference/limits.md":
        page.meta["search"] = {"boost": LIMITS_FIRST}
    elif page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"boost": DECISIONS_LAST}
    if page.file.src_uri == "index.md":
        markdown = markdown.replace("gallery of all models", "[gallery of all models](gallery/index.md)")
    markdown = markdown.replace("decisions/)", "decisions/index.md)")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:README\.md|LICENSE|(?:models|systems)/[^)]*)\)", r"\1", markdown)


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
    cards, used = [], set()
    for path in sorted((ROOT / "models").glob("*.py")):
        name = path.stem
        if not _wanted(name, "MB2FMU_GALLERY"):
            continue
        definition = model.check_model(model.load(path))
        docstring = path.read_text(encoding="utf-8").split('"""')[1]
        title, _, rest = docstring.partition("\n")
        yield f"gallery/{name}.svg", definition.diagram
        yield f"gallery/{name}_motion.svg", _picture(definition, name)
        made = _animated(path) if _wanted(name, "MB2FMU_ANIMATE") else _Animated()
        if made.page:
            yield f"gallery/{name}_animation.html", made.page
            yield f"gallery/{name}_still.svg", made.still
            yield f"gallery/{name}.webp", made.film
        frame = f"No animation: {made.missing}." if made.missing else _frame(definition, name) if made.page else ""
        yield f"gallery/{name}.md", _page(definition, name, (title, frame, rest), path)
        tags = _tags(definition, docstring)
        used |= set(tags)
        cards.append(_card(name, f"{definition.name}: {title}", tags, moves=bool(made.page)))
    head = ["# Gallery", "", "Every model of the repository, an FMU of which is made and validated in the tests.", ""]
    choice = _choice([tag for tag in TAGS if tag in used])
    yield "gallery/index.md", "\n".join([*head, '<div class="gallery">', choice, *cards, "</div>"]) + "\n"


def _wanted(name: str, variable: str) -> bool:
    """Whether an environment variable names the model, says ``all``, or is not set."""
    wanted = os.environ.get(variable, "all")
    return wanted == "all" or name in wanted.split(",")


TAGS = {
    "loops": "bodies that close a loop",
    "nonholonomic": "wheels that roll, blades that do not slip sideways",
    "quaternions": "bodies that turn freely in space",
    "events": "impacts, friction that sticks, switches",
    "robots": "robots and machines with driven joints",
    "many bodies": "ten bodies and more",
    "published results": "compared with published numbers",
    "closed form": "compared with a solution in closed form",
}
"""Tag of the gallery → what it says."""

_SWITCHES = (sm.sign, sm.Heaviside, sm.Piecewise, sm.Min, sm.Max, StickingSign)
_MANY = 10


def _tags(definition: CheckedModel, docstring: str) -> list[str]:
    """Tags by what the mechanism is, and by what its text says of results."""
    read, text = mechanism.read_mechanism(definition), " ".join(docstring.split())
    rows = len(read.velocity_constraints.names) if read.velocity_constraints is not None else 0
    units_of_length = 1 if read.quaternions and rows else 0
    holds = {
        "loops": len(read.bodies) > 1 and bool(read.holonomic),
        "nonholonomic": rows > len(read.holonomic) + units_of_length * len(read.quaternions),
        "quaternions": bool(read.quaternions),
        "events": read.has_event_sources or any(each.has(*_SWITCHES) for each in _expressions(read.loads)),
        "robots": "robot" in text or "excavator" in text,
        "many bodies": len(read.bodies) >= _MANY,
        "published results": "ublished" in text,
        "closed form": "losed form" in text,
    }
    return [tag for tag, true in holds.items() if true]


def _expressions(of: object) -> Iterator[sm.Basic]:
    """All expressions within records."""
    if isinstance(of, sm.Basic | sm.MatrixBase):
        yield of
    elif isinstance(of, tuple | list):
        for each in of:
            yield from _expressions(each)
    elif is_dataclass(of):
        for each in fields(of):
            yield from _expressions(getattr(of, each.name))


def _choice(tags: Sequence[str]) -> str:
    """Buttons that show the models of one tag; the style sheet does it, no script is needed."""
    parts = ['<fieldset class="tags"><legend>Show</legend>']
    for tag, what in {"all": "every model", **{tag: TAGS[tag] for tag in tags}}.items():
        checked = " checked" if tag == "all" else ""
        button = f'<input type="radio" name="tag" value="{_slug(tag)}"{checked}><span>{tag}</span>'
        parts.append(f'<label title="{what}">{button}</label>')
    return "".join([*parts, "</fieldset>"])


def _card(name: str, text: str, tags: Sequence[str], *, moves: bool) -> str:
    """One model: its film (its diagram where there is none, or where movement is not wanted), its title, its tags."""
    still = f'<img src="{name}_still.svg" alt="" loading="lazy">' if moves else f'<img src="{name}.svg" alt="">'
    if moves:
        source = f'<source media="(prefers-reduced-motion: no-preference)" srcset="{name}.webp" type="image/webp">'
        still = f"<picture>{source}{still}</picture>"
    title, _, what = text.partition(": ")
    marks = "".join(f"<i>{tag}</i>" for tag in tags)
    classes = " ".join(["card", *(_slug(tag) for tag in tags)])
    href = f'href="{name}.html"'
    return f'<a class="{classes}" {href}>{still}<b>{title}</b><span>{escape(what)}</span><small>{marks}</small></a>'


def _slug(tag: str) -> str:
    return "tag-" + tag.replace(" ", "-")


@dataclass(frozen=True)
class _Animated:
    """A model in motion: its page, a film and a still for the gallery; or why there are none."""

    page: str = ""
    film: bytes = b""
    still: bytes = b""
    missing: str = ""


def _animated(path: Path) -> _Animated:
    """A model in motion; a Lagrangian alone has no bodies to draw."""
    try:
        drawing, signals = pipeline.animate(path)
    except ModelError as error:
        return _Animated(missing="; ".join(fault.what for fault in error.faults))
    with tempfile.TemporaryDirectory() as folder:
        thumbnail = Path(folder) / "film.webp"
        render_video(drawing, thumbnail, width=THUMBNAIL, most=FRAMES)
        moving = thumbnail.read_bytes()
    half = float(drawing.poses.time[0] + drawing.poses.time[-1]) / 2
    return _Animated(
        add_page_height_reporting(visualization.render_animation_page(drawing, signals)),
        moving,
        visualization.render_still_picture(drawing, half, triad=False),
    )


def _frame(definition: CheckedModel, name: str) -> str:
    """The animation within the model's page, as high as it is: the same way as in notebooks."""
    style, title = "width: 100%; height: 32rem; border: 0; outline: 1px solid #8884", f"{definition.name} in motion"
    frame = f'<iframe class="mb2fmu" src="{name}_animation.html" title="{title}" style="{style}"></iframe>'
    return f"{frame}\n<script>{HEIGHT_RECEIVER_SCRIPT}</script>"


def _page(definition: CheckedModel, name: str, texts: tuple[str, str, str], path: Path) -> str:
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


def _parameters(definition: CheckedModel) -> Iterator[tuple[str, str, str, str]]:
    for p in definition.parameters:
        yield p.name, str(p.value) if p.calculated else f"{float(p.value):g}", p.unit, p.description


def _table(what: str, value: str, rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    lines = [f"| `{name}` | `{number}` | {unit} | {description} |" for name, number, unit, description in rows]
    if not lines:
        return []
    return [f"| {what} | {value} | FMU | |", "|---|---|---|---|", *lines, ""]


def _picture(definition: CheckedModel, name: str) -> bytes:
    """The first coordinates over time, out of the stored reference; one plot for each unit."""
    trajectory = reference_files.read_reference_files(ROOT / "reference" / name)
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
