"""Makes a checkout ready for PyPI: the repository's address in the metadata, absolute links in the README.

Usage: python scripts/publishable.py https://host/owner/name v0.2.0

It is run by the release workflow in a checkout of its own, and needs nothing but Python. The address is not kept in
the files, so that a copy of the repository elsewhere never points here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def with_address(pyproject: str, address: str, tag: str) -> str:
    """``pyproject.toml`` with a table of addresses before its scripts."""
    urls = {
        "Homepage": address,
        "Documentation": f"{address}/blob/{tag}/docs/index.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    table = "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    head, mark, tail = pyproject.partition("[project.scripts]\n")
    if not mark or "[project.urls]" in pyproject:
        raise SystemExit("pyproject.toml has no [project.scripts], or has addresses already")
    return f"{head}{table}\n{mark}{tail}"


def with_absolute_links(readme: str, address: str, tag: str) -> str:
    """The README with every link and picture that is a path in the repository made absolute."""
    picture = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{address}/raw/{tag}/", readme)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{address}/blob/{tag}/", picture)


def main(address: str, tag: str) -> None:
    """Rewrites both files in place; refuses a tag that is not the version."""
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    if version is None or tag != f"v{version[1]}":
        raise SystemExit(f"the tag {tag} is not the version {version[1] if version else '?'} of pyproject.toml")
    for name, change in (("pyproject.toml", with_address), ("README.md", with_absolute_links)):
        path = ROOT / name
        path.write_text(change(path.read_text(encoding="utf-8"), address.rstrip("/"), tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
