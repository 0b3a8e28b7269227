"""The page as bytes: the filled-in template and style sheet."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from mb2fmu.report.pages.report_content import ReportPage
from mb2fmu.report.sections.tooltips import EXPLANATIONS, add_tooltips
from mb2fmu.visualization.three_js import THREE_JS_LICENCE


def render_page_template(page: ReportPage) -> bytes:
    """Return one self-contained HTML document in UTF-8: style and pictures inside, nothing to load.

    By the page's own policy one script may run, which makes tables and charts answer, and the two of an animation.
    """
    made = report_template_environment()
    style = Markup(read_template_source(made, "page.css").strip())  # noqa: S704 (our own file)
    running = Markup(escape_style_text(f"{page.title}: {page.kind}"))  # noqa: S704 (escaped there)
    script, digest = read_page_script(made)
    text = _load_page_template(made).render(
        page=page,
        style=style,
        running=running,
        script=script,
        digest=digest,
        words=EXPLANATIONS,
        three_licence=THREE_JS_LICENCE,
    )
    lines = (line.rstrip() for line in text.splitlines())
    return ("\n".join(line for line in lines if line) + "\n").encode()


def escape_style_text(text: str) -> str:
    """Return a string for a style sheet; all but letters, digits and blanks are written as code points."""
    return "".join(c if (c.isascii() and c.isalnum()) or c == " " else f"\\{ord(c):x} " for c in text)


@cache
def read_page_script(environment: Environment) -> tuple[Markup, str]:
    """Return the pages' own script as between its tags, and its SHA-256 in base64."""
    text = f"/*<![CDATA[*/\n{read_template_source(environment, 'report.js').strip()}\n/*]]>*/"  # the page is XML, too
    lines = (line.rstrip() for line in text.splitlines())
    text = "\n".join(line for line in lines if line)  # as print_page leaves them
    return Markup(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # noqa: S704 (our own file)


@cache
def report_template_environment() -> Environment:
    """Return the environment of all report templates: undefined names raise, text is escaped for HTML."""
    made = Environment(
        loader=PackageLoader("mb2fmu.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["explained"] = add_tooltips
    return made


@cache
def _load_page_template(environment: Environment) -> Template:
    """Return the template of the page."""
    return environment.get_template("page.html.jinja")


def read_template_source(environment: Environment, name: str) -> str:
    """Return a template's text unchanged."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
