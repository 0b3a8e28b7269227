"""The documentation site: every model has its page, and nothing is loaded from elsewhere.

By day a site of a few pages is built, by night the whole with warnings as errors; links are followed by day too.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from click.testing import CliRunner
from markdown.extensions.toc import slugify
from representatives import by_night

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ANIMATED = "simple_pendulum"
BY_DAY = (ANIMATED, "stick_slip_belt")
"""One without a tag, and one with events."""
FEW = ("index.md", "reference/limits.md", "how_to/impact.md", "how_to/linearize.md")
"""Pages of the site that is built by day; what is searched for stands on several of them."""
WRITTEN = [
    path
    for folder in ("tutorials", "how_to", "reference", "explanation")
    for path in sorted((DOCS / folder).rglob("*.md"))
]


def built(folder: Path, gallery: str, *arguments: str) -> Path:
    """The site, with these models in its gallery."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder), *arguments]
    chosen = {"MB2FMU_ANIMATE": ANIMATED, "MB2FMU_GALLERY": gallery}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | chosen, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def built_here(folder: Path, gallery: str, *arguments: str) -> Path:
    """The same in this process, which has imported most of what takes half of the time elsewhere."""
    from mkdocs.__main__ import cli

    command = ["build", "--quiet", "--site-dir", str(folder), *arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in a process of its own
        done = CliRunner(env={"MB2FMU_ANIMATE": ANIMATED, "MB2FMU_GALLERY": gallery}).invoke(cli, command)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of a few pages: the whole has nothing else but more of them, and the API."""
    folder = tmp_path_factory.mktemp("site")
    docs = folder / "docs"
    for name in (*FEW, "site.css", "iframe-worker.js"):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOCS / name, docs / name)
    hooks = [str(ROOT / hook) for hook in configuration()["hooks"]]
    settings = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": str(docs), "hooks": hooks, "nav": list(FEW)}
    (folder / "mkdocs.yml").write_text(json.dumps(settings), encoding="utf-8")
    return built_here(folder / "built", ",".join(BY_DAY), "--config-file", str(folder / "mkdocs.yml"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return built(tmp_path_factory.mktemp("whole"), "all", "--strict")


def configuration() -> dict:
    """That of the whole site; paths of programs in it are left alone."""
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def tags_of(site: Path) -> dict[str, set[str]]:
    """Those of each card."""
    index = (site / "gallery" / "index.html").read_text()
    return {
        name: set(classes.split()) for classes, name in re.findall(r'<a class="card([^"]*)" href="(\w+)\.html"', index)
    }


def assert_shown(site: Path, models: list[str]) -> None:
    """These models, and no others, have a card and a page with pictures."""
    index = (site / "gallery" / "index.html").read_text()
    assert sorted(re.findall(r'<a class="card[^"]*" href="(\w+)\.html"', index)) == models
    for name in models:
        page = (site / "gallery" / f"{name}.html").read_text()
        for picture in (f"{name}.svg", f"{name}_motion.svg"):
            assert f'src="{picture}"' in page
            assert (site / "gallery" / picture).stat().st_size > 500


@pytest.mark.repeats
def test_every_model_is_in_the_gallery(whole):
    assert_shown(whole, sorted(path.stem for path in (ROOT / "models").glob("*.py")))
    tags = tags_of(whole)
    assert tags["four_bar"] == {"tag-loops"}
    assert {"tag-nonholonomic", "tag-quaternions"} <= tags["rolling_sphere"]
    assert not {"tag-events", "tag-loops"} & tags["rolling_sphere"]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script that writes both files for programs."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    yield importlib.import_module("llms_files")
    del sys.modules["llms_files"]


def assert_listed(index: str, full: str) -> list[str]:
    """Each page that somebody wrote is in both files, with a sentence in the first; return the addresses there."""
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S+ \S+", index, flags=re.MULTILINE)
    paths = [path.relative_to(DOCS) for path in WRITTEN]
    assert sorted(listed) == sorted(path.with_suffix(".html").as_posix() for path in paths)
    for path in paths:
        assert f"<!-- {path.as_posix()} -->" in full
    return listed


def test_programs_that_read_find_every_page(hooks: ModuleType) -> None:
    named = {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in WRITTEN}
    pages = [hooks.DocumentationPage(f"{path.with_suffix('.html')}", f"{path}", text) for path, text in named.items()]
    assert_listed(hooks.form_index("name", "what it is", pages), hooks.join_pages(pages))


@pytest.mark.repeats
def test_programs_that_read_find_every_page_of_the_site(whole) -> None:
    listed = assert_listed(*((whole / name).read_text(encoding="utf-8") for name in ("llms.txt", "llms-full.txt")))
    assert all((whole / address).is_file() for address in listed)


def anchors(page: Path) -> set[str]:
    """What stands behind a ``#``: the headings of a page, as the site names them, and what is named by hand."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    shown = [re.sub(r"\[([^\]]+)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings]
    return {slugify(heading, "-") for heading in shown} | set(re.findall(r'(?:id="|\{ *#)([\w-]+)', text))


def dead_links(page: Path) -> list[str]:
    """Links to files that are not there, or to headings that the file does not have."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        address, _, anchor = target.partition("#")
        path = page.parent / address if address else page
        if not re.match(r"\w+:", target) and (
            not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path))
        ):
            dead.append(f"{page.name}: {target}")
    return dead


def test_links_lead_to_pages_and_headings_that_are_there(tmp_path: Path) -> None:
    assert [link for page in sorted([ROOT / "README.md", *DOCS.rglob("*.md")]) for link in dead_links(page)] == []
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](page.md#one-thing) [b](#one-thing) [c](#two) [d](none.md) [e](https://x.org/y)\n")
    assert dead_links(page) == ["page.md: #two", "page.md: none.md"]


def test_every_page_is_in_the_navigation() -> None:
    shown = re.findall(r"[\w/]+\.md", json.dumps(configuration()["nav"]))
    assert sorted(shown) == sorted(["index.md", *(path.relative_to(DOCS).as_posix() for path in WRITTEN)])


@pytest.mark.slow
def test_models_are_in_the_gallery(site):
    assert_shown(site, sorted(BY_DAY))
    assert f'src="{ANIMATED}_animation.html"' in (site / "gallery" / f"{ANIMATED}.html").read_text()
    assert "<canvas" in (site / "gallery" / f"{ANIMATED}_animation.html").read_text()


@pytest.mark.slow
def test_the_gallery_moves_and_is_chosen_from_by_tags(site):
    from PIL import Image

    with Image.open(site / "gallery" / f"{ANIMATED}.webp") as film:
        assert film.n_frames > 10
        assert film.width == 240
    index = (site / "gallery" / "index.html").read_text()
    tags = tags_of(site)
    assert "tag-events" in tags["stick_slip_belt"]
    assert not {"tag-events", "tag-loops"} & tags[ANIMATED]
    style = (site / "site.css").read_text()
    for tag in re.findall(r'name="tag" value="([^"]+)"', index):
        assert tag == "tag-all" or f'input[value="{tag}"]:checked) .card:not(.{tag})' in style


@pytest.mark.slow
@pytest.mark.parametrize("which", ["site", *by_night("whole")])
def test_the_pages_load_nothing_from_elsewhere(which, request):
    site = request.getfixturevalue(which)
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:)?//", re.IGNORECASE)
    for page in site.rglob("*.html"):
        found = [m.group(0) for m in loads.finditer(page.read_text()) if 'rel="canonical"' not in m.group(0)]
        assert not found, (page.relative_to(site), found[:3])


@pytest.mark.repeats
def test_the_api_shows_what_is_public(whole):
    page = (whole / "reference" / "api.html").read_text()
    for name in (
        "Model",
        "Parts",
        "derive",
        "export",
        "run",
        "sensitivities",
        "linearize",
        "Sensitivities",
        "AnalysisError",
    ):
        assert f">{name}<" in page or f"{name}</" in page, name


@pytest.mark.slow
@pytest.mark.parametrize("word", ["URDF", *by_night("Scheduled")])
def test_the_search_works_from_disk_and_finds_what_there_is_not(site, word) -> None:
    """Both are on the page of what there is and is not, which comes before all others."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed on this machine")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [browser, *options, f"{(site / 'index.html').as_uri()}?q={word}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    first = re.search(r'class="md-search-result__item"><a href="([^"?#]*)', shown)
    assert first is not None, "nothing was found"
    assert first.group(1).endswith("/limits.html")
