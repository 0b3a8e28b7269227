"""The page as bytes: fills the template and the style sheet in, nothing else."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from mb2fmu.animation.three import LICENCE
from mb2fmu.report.content import Page


def print_page(page: Page) -> bytes:
    """One self-contained HTML document in UTF-8: style and pictures within it, no address to load from.

    No script either, unless there is an animation: then its two scripts alone may run, by the page's own policy.
    """
    made = environment()
    style = Markup(source(made, "page.css").strip())  # noqa: S704 (our own file)
    text = _template(made).render(page=page, style=style, three_licence=LICENCE)
    lines = (line.rstrip() for line in text.splitlines())
    return ("\n".join(line for line in lines if line) + "\n").encode()


@cache
def environment() -> Environment:
    """Of all templates of the reports: what is filled in is escaped, and must be there."""
    return Environment(
        loader=PackageLoader("mb2fmu.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _template(environment: Environment) -> Template:
    return environment.get_template("page.html.jinja")


def source(environment: Environment, name: str) -> str:
    """A template's text as it is."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
