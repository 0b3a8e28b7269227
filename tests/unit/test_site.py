"""The documentation site: built with warnings as errors; every model has its page; nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from representatives import by_night

ROOT = Path(__file__).parents[2]
ANIMATED = "simple_pendulum"
BY_DAY = (ANIMATED, "stick_slip_belt")
"""One without a tag, and one with events."""


def built(folder: Path, gallery: str) -> Path:
    """The site, with these models in its gallery."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    chosen = {"MB2FMU_ANIMATE": ANIMATED, "MB2FMU_GALLERY": gallery}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | chosen, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built(tmp_path_factory.mktemp("site"), ",".join(BY_DAY))


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
def test_every_model_is_in_the_gallery(tmp_path):
    site = built(tmp_path, "all")
    assert_shown(site, sorted(path.stem for path in (ROOT / "models").glob("*.py")))
    tags = tags_of(site)
    assert tags["four_bar"] == {"tag-loops"}
    assert {"tag-nonholonomic", "tag-quaternions"} <= tags["rolling_sphere"]
    assert not {"tag-events", "tag-loops"} & tags["rolling_sphere"]


@pytest.mark.slow
def test_programs_that_read_find_every_page(site):
    """Each page that somebody wrote is in both files, in ``llms.txt`` with an address that exists and a sentence."""
    index, full = ((site / name).read_text(encoding="utf-8") for name in ("llms.txt", "llms-full.txt"))
    written = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    written = [path for path in written if path.parts[0] in {"tutorials", "how_to", "reference", "explanation"}]
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S+ \S+", index, flags=re.MULTILINE)
    assert sorted(listed) == sorted(path.with_suffix(".html").as_posix() for path in written)
    assert all((site / address).is_file() for address in listed)
    for path in written:
        assert f"<!-- {path.as_posix()} -->" in full


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
def test_the_pages_load_nothing_from_elsewhere(site):
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:)?//", re.IGNORECASE)
    for page in site.rglob("*.html"):
        found = [m.group(0) for m in loads.finditer(page.read_text()) if 'rel="canonical"' not in m.group(0)]
        assert not found, (page.relative_to(site), found[:3])


@pytest.mark.slow
def test_the_api_shows_what_is_public(site):
    page = (site / "reference" / "api.html").read_text()
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
