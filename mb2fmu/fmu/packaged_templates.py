"""Files that a package carries: the environment of jinja2 that fills in templates, and fixed files as they are."""

from __future__ import annotations

from contextlib import suppress
from importlib import resources

import jinja2
from jinja2.bccache import Bucket

from mb2fmu.fmu.user_cache import find_cache_subfolder


class _CompiledTemplateCache(jinja2.FileSystemBytecodeCache):
    """Keeps compiled templates in the cache folder: to compile those of a report takes longer than to fill them in."""

    def get_bucket(self, environment: jinja2.Environment, name: str, filename: str | None, source: str) -> Bucket:
        """Return a template's place: empty where its text, jinja2 or the environment's options have changed."""
        options = environment.autoescape, environment.trim_blocks, environment.lstrip_blocks
        return super().get_bucket(environment, name, filename, f"{jinja2.__version__} {options} {source}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template, unless the disk is full or the folder is gone."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def make_template_environment(package: str, *, escape: bool = False) -> jinja2.Environment:
    """Return an environment in which names that are not defined raise.

    Args:
        package: Its folder ``templates`` has the templates.
        escape: Whether text is escaped for HTML and XML; source code is not.
    """
    folder = find_cache_subfolder("templates")
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        autoescape=escape,  # noqa: S701 (source code is not HTML)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=_CompiledTemplateCache(str(folder)) if folder else None,
    )


def read_packaged_file(package: str, path: str) -> bytes:
    """Return a file that an installed package carries, with Unix line ends."""
    return resources.files(package).joinpath(path).read_bytes().replace(b"\r\n", b"\n")
