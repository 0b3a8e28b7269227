"""Files that a package carries: the environment of jinja2 that fills in templates, and fixed files as they are."""

from __future__ import annotations

from importlib import resources

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


def read_packaged_file(package: str, path: str) -> bytes:
    """Return a file that an installed package carries, with Unix line ends."""
    return resources.files(package).joinpath(path).read_bytes().replace(b"\r\n", b"\n")
