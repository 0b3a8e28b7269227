"""Pages as bytes: a template filled in, with the style sheet and pictures inside."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, Template
from markupsafe import Markup

from mb2fmu.fmu.packaged_templates import make_template_environment
from mb2fmu.report.sections.report_tooltips import EXPLANATIONS, add_tooltips
from mb2fmu.visualization.three_js import THREE_JS_LICENCE

if TYPE_CHECKING:
    from mb2fmu.report.pages.report_page_records import ReportPageContent


def render_page_template(page: ReportPageContent) -> bytes:
    """Return one self-contained HTML document in UTF-8: style and pictures inside, nothing to load.

    By the page's own policy one script may run, which makes tables and charts answer, and the two of an animation.
    """
    running = Markup(_escape_style_text(f"{page.title}: {page.kind}"))  # noqa: S704 (escaped there)
    script, digest = read_page_script(report_template_environment())
    return render_html_document(
        "page.html.jinja",
        page=page,
        running=running,
        script=script,
        digest=digest,
        words=EXPLANATIONS,
        three_licence=THREE_JS_LICENCE,
    )


def render_html_document(template: str | Template, **values: object) -> bytes:
    """Return one HTML document in UTF-8, without empty lines.

    Args:
        template: Name of one of this package, or another package's own.
        values: What it names, but for ``style``: the style sheet of all pages.
    """
    made = report_template_environment()
    style = Markup(_read_template_source(made, "page.css").strip())  # noqa: S704 (our own file)
    text = made.get_template(template).render(style=style, **values)
    return (_drop_empty_lines(text) + "\n").encode()


def _drop_empty_lines(text: str) -> str:
    """Return a text without empty lines and blanks at ends of lines."""
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _escape_style_text(text: str) -> str:
    """Return a string for a style sheet; all but letters, digits and blanks are written as code points."""
    return "".join(c if (c.isascii() and c.isalnum()) or c == " " else f"\\{ord(c):x} " for c in text)


@cache
def read_page_script(environment: Environment) -> tuple[Markup, str]:
    """Return the pages' own script as between its tags, and its SHA-256 in base64."""
    text = f"/*<![CDATA[*/\n{_read_template_source(environment, 'report.js').strip()}\n/*]]>*/"  # the page is XML, too
    text = _drop_empty_lines(text)  # as the document is left
    return Markup(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # noqa: S704 (our own file)


@cache
def report_template_environment() -> Environment:
    """Return the environment of all report templates: undefined names raise, text is escaped for HTML."""
    made = make_template_environment("mb2fmu.report", escape=True)
    made.filters["explained"] = add_tooltips
    return made


def _read_template_source(environment: Environment, name: str) -> str:
    """Return a template's text unchanged."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
