"""The environment of jinja2 in which every target fills in its templates."""

from __future__ import annotations

import jinja2


def make_template_environment(package: str, *, escape: bool = False) -> jinja2.Environment:
    """Return an environment in which names that are not defined raise.

    Args:
        package: Its folder ``templates`` has the templates.
        escape: Whether text is escaped for XML; source code is not.
    """
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        autoescape=escape,  # noqa: S701 (source code is not HTML)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
