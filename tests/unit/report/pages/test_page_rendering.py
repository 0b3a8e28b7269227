"""The page: well-formed, closed to the outside, true to the result, the same each time."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lxml import etree, html
from mechanisms import mechanism_of, moving_pivot
from representatives import by_night

from mb2fmu import visualization
from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.report import ReportProvenance, render_fmu_description_page, render_validation_page
from mb2fmu.report.pages import validation_page
from mb2fmu.report.terminal_verdict_tables import format_terminal_verdict_blocks, format_verdict_line
from mb2fmu.validation import IndependentCheck, IndependentChecks
from mb2fmu.validation.validation_result import ExercisedQuantityResult

HOSTILE = '<script>alert("1")</script>&<img src=https://evil.example/x onerror=alert(1)>'
ROOT = Path(__file__).parents[4]


def page_of(case, provenance=None):
    return render_validation_page(case.definition, case.equations, case.interface, case.result, provenance)


def parse(page):
    """As XML, which forgives nothing; HTML's void elements are closed for that."""
    text = page.decode()
    assert text.startswith("<!doctype html>\n")
    text = re.sub(r"<(meta|img)\b([^>]*)>", r"<\1\2/>", text.removeprefix("<!doctype html>\n"))
    return etree.fromstring(text)


def test_the_page_is_well_formed_and_has_every_section(pendulum):
    root = parse(page_of(pendulum()))
    assert [h.get("id") for h in root.iter("h2")] == [
        "verdict",
        "model",
        "errors",
        "trajectories",
        "balances",
        "independence",
        "conformance",
        "equations",
        "variables",
        "provenance",
    ]
    identities = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(identities) == len(set(identities))
    targets = {a.get("href").removeprefix("#") for a in root.iter("a")}
    assert targets <= set(identities)


def test_a_rung_that_fails_fails_the_verdict_and_is_named(pendulum):
    case = pendulum()
    good = IndependentCheck(
        name="own equations", how="in numbers", points=24, ratio=0.01, worst="der(u) at t = 1 s", verdict="passed"
    )
    bad = replace(good, name="own kinematics", ratio=7.5, verdict="failed", reason="der(u) is 7.5 times off")
    none = replace(good, points=0, ratio=0.0, worst="", verdict="unjudged", reason="too many operations")
    for checks, passed in (((good, none), case.result.passed), ((good, bad), False)):
        result = replace(case.result, independent_check_set=IndependentChecks(checks=checks))
        assert result.passed is passed
        text = render_validation_page(case.definition, case.equations, case.interface, result).decode()
        assert all(check.name in text for check in (*checks, result.independent_checks[-1]))
        assert [row["verdict"] for row in json.loads(result.to_json())["independent_checks"]][:2] == [
            r.verdict for r in checks
        ]
    assert "not as own kinematics" in text
    assert "own kinematics" in str(format_verdict_line(result))


def test_the_description_of_a_fmu_that_nobody_has_run_claims_nothing(pendulum):
    case = pendulum()
    page = render_fmu_description_page(case.definition, case.equations, case.interface, licences="licenses/license.txt")
    root = parse(page)
    sections = ["model", "equations", "variables", "provenance"]
    assert [h.get("id") for h in root.iter("h2")] == sections
    links = [a.get("href") for a in root.iter("a")]
    assert links == [*(f"#{name}" for name in sections), "licenses/license.txt"]
    text = " ".join("".join(root.find("body").itertext()).split())
    assert "nobody has run it yet" in text
    assert not re.search(r"passed|failed|validat|reviewed|error", text.casefold())
    with_verdict = parse(page_of(case))
    for heading in ("equations", "variables"):  # the same as in the report
        own, other = (tree.xpath(f"//section[h2/@id='{heading}']")[0] for tree in (root, with_verdict))
        assert etree.tostring(own) == etree.tostring(other)
    assert (
        render_fmu_description_page(case.definition, case.equations, case.interface, licences="licenses/license.txt")
        == page
    )


def scripts_of(page):
    """SHA-256, in base64, of every script of the page that a browser would run."""
    found = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    return [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found]


def test_nothing_is_loaded_and_only_the_own_script_runs(pendulum):
    svg = '<svg viewBox="0 0 1 1"><image href="https://evil.example/x.png"/><script>alert(1)</script></svg>'
    page = page_of(pendulum(diagram=svg, description=HOSTILE))
    root = parse(page)
    assert not list(root.iter("link", "iframe", "object", "embed", "base"))
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name in {"src", "href", "srcset", "data", "action"}:
                assert value.startswith(("#", "data:image/svg+xml;base64,"))
    style = root.find(".//style").text
    assert "url(" not in style
    assert "@import" not in style
    policy = root.find(".//meta[@http-equiv]").get("content")
    assert policy.startswith("default-src 'none'")
    (digest,) = scripts_of(page.decode())
    assert re.search("script-src (.*)$", policy)[1] == f"'sha256-{digest}'"


def test_text_of_the_model_is_escaped_everywhere(pendulum):
    case = pendulum(description=HOSTILE, diagram=HOSTILE, findings=(ExternalCheckerFinding(HOSTILE, "error", HOSTILE),))
    definition = replace(case.definition, name=HOSTILE)
    variables = tuple(replace(v, reason=HOSTILE) for v in case.result.variables)
    result = replace(case.result, variables=variables, notes=(HOSTILE,), provenance={HOSTILE: HOSTILE})
    page = page_of(
        replace(case, definition=definition, result=result), ReportProvenance({HOSTILE: HOSTILE}, commands=(HOSTILE,))
    )
    root = parse(page)
    assert not list(root.iter("img"))
    assert len(list(root.iter("script"))) == 1
    assert not set("<&") & set("".join(root.find(".//style").itertext()))
    assert root.find(".//h1").text == HOSTILE
    assert root.find(".//pre[@class='drawing']").text == HOSTILE


def test_the_verdict_and_the_variables_that_failed_are_said_first(pendulum):
    root = parse(page_of(pendulum(outputs=6, failing=("y2", "y5"), unjudged=("y3",))))
    headline = " ".join(root.find(".//h2[@id='verdict']").itertext())
    assert "Failed" in headline
    assert "2 of 8 variables out of bounds: y2, y5" in headline
    assert "1 of 8 variables could not be judged: y3" in headline
    rows = [row for row in root.iter("tr") if row.get("class") == "bad"]
    assert [row.find("th/a").text for row in rows if row.find("th/a") is not None] == ["y5", "y2", "y3"]
    assert [row.find("th").text.split(":")[0] for row in rows if row.find("th/a") is None] == ["trajectory"]
    assert len([f for f in root.iter("figure") if f.get("class") == "card bad"]) == 3


def test_the_default_experiment_alone_has_a_colour_of_its_own(pendulum):
    case = pendulum()
    item = ExercisedQuantityResult(name="g", role="parameter", ratio=0.0, most="", reason="nothing was moved")
    result = replace(case.result, exercised_quantities=(item,))
    page = page_of(replace(case, result=result))
    verdict = parse(page).find(".//h2[@id='verdict']")
    assert " ".join(verdict.itertext()).split()[:3] == ["Default", "experiment", "only"]
    assert verdict.getparent().get("class") == "verdict doubt"
    assert b"moves as the mechanism does in the default experiment" in page
    assert b'name="mb2fmu:verdict" content="default experiment only"' in page


def test_a_pass_is_said_plainly(pendulum):
    case = pendulum()
    root = parse(page_of(case))
    headline = " ".join(root.find(".//h2[@id='verdict']").itertext())
    assert " ".join(headline.split()) == "Passed 6 quantities within their bounds, 4 variables among them"
    assert "6 quantities within their bounds" in str(format_verdict_line(case.result))  # the terminal counts the same
    assert not [e for e in root.iter() if "bad" in (e.get("class") or "").split()]


def test_an_error_of_a_checker_fails_the_verdict(pendulum):
    findings = (
        ExternalCheckerFinding("checker 1.0", "error", "no start value"),
        ExternalCheckerFinding("other 2.0", "note", "nothing"),
    )
    root = parse(page_of(pendulum(findings=findings)))
    assert "1 error found by the checkers" in " ".join(root.find(".//h2[@id='verdict']").itertext())
    table = root.find(".//section[@aria-labelledby='conformance']//tbody")
    said = [(row.find("th").text, row.get("class")) for row in table]
    assert said == [("fmpy: Co-Simulation", "good"), ("checker 1.0", "bad"), ("other 2.0", "good")]
    assert "no start value" in "".join(table.itertext())


def test_numbers_in_the_tables_are_the_results_to_the_last_bit(pendulum):
    case = pendulum(outputs=3)
    root = parse(page_of(case))
    rows = root.findall(".//section[@aria-labelledby='errors']//tbody/tr")
    found = {row.find("th/a").text: [float(d.get("value")) for d in row.iter("data")] for row in rows}
    assert found == {v.name: [v.ratio, v.error, v.bound, v.at] for v in case.result.variables}
    rows = root.findall(".//section[@aria-labelledby='balances']//tbody/tr")
    found = {row.find("th").text: [float(d.get("value")) for d in row.iter("data")] for row in rows}
    assert found == {i.name: [i.ratio, i.value, i.bound, i.at] for i in case.result.invariants}


def test_the_terminal_says_why_a_variable_is_judged_to_an_earlier_time(pendulum):
    said = "\n".join(str(block) for block in format_terminal_verdict_blocks(pendulum(horizon=1.2).result, 120))
    assert "Not predictable until the end at 2 s: 4 of 4 variables, the first is" in said
    assert "Not predictable until" not in "\n".join(
        str(block) for block in format_terminal_verdict_blocks(pendulum().result, 120)
    )


def test_a_horizon_is_said_and_shaded(pendulum):
    root = parse(page_of(pendulum(horizon=1.2)))
    assert "4 of 4 variables judged up to a horizon before the end at 2 s" in "".join(root.itertext())
    # A trajectory and an error panel for each of the four variables.
    assert len([r for r in root.iter() if r.get("class") == "beyond"]) == 8


def test_headings_tables_and_pictures_can_be_read_without_seeing(pendulum):
    root = parse(page_of(pendulum(diagram='<svg viewBox="0 0 1 1"/>')))
    assert all(cell.get("scope") for cell in root.iter("th"))
    assert all(image.get("alt") for image in root.iter("img"))
    charts = list(root.iter("svg"))
    # Four variables, one input, the energy, all one-step errors.
    assert len(charts) == 7
    for chart in charts:
        assert chart.get("role") == "img"
        assert chart.find("title").get("id") == chart.get("aria-labelledby")
        assert any("time in s" in (text.text or "") for text in chart.iter("text"))


def test_axes_name_quantity_and_unit(pendulum):
    root = parse(page_of(pendulum()))
    chart = root.find(".//figure[@id='variable-1']/svg")
    assert [text.text for text in chart.iter("text") if text.get("class") == "label"] == [
        "hinge.speed in rad/s",
        "error in rad/s",
    ]


def test_variables_stand_with_the_symbols_of_the_equations(pendulum):
    case = pendulum()
    root = parse(page_of(case))
    rows = {row.find("th").text: row for row in root.findall(".//section[@aria-labelledby='variables']//tbody/tr")}
    assert list(rows) == [v.name for v in case.interface.variables]
    assert "".join(rows["m"].find("td/math").itertext()) == "mrod"
    foreign = parse(render_validation_page(case.definition, case.equations, None, case.result))
    rows = {row.find("th").text: row for row in foreign.findall(".//section[@aria-labelledby='variables']//tbody/tr")}
    assert "".join(rows["hinge.angle"].find("td/math").itertext()) == "θ"


def test_of_a_fmu_that_is_not_ours_nothing_is_claimed(pendulum):
    case = pendulum()
    ours, foreign = (
        page_of(case).decode(),
        render_validation_page(case.definition, case.equations, None, case.result).decode(),
    )
    assert "Solver of the FMU" in ours
    assert "Solver of the FMU" not in foreign
    assert "Reference by" in foreign
    assert "The reference&#39;s equations" in foreign


def test_timings_are_printed_only_when_they_are_handed_in(pendulum):
    case = pendulum()
    assert b"Time spent" not in page_of(case)
    assert b"Time spent" in page_of(case, ReportProvenance(timings={"derive": 1.0}))


def test_the_same_bytes_twice(pendulum):
    assert page_of(pendulum()) == page_of(pendulum())


@pytest.mark.repeats  # by day the page in a whole FMU, in test_cli
def test_the_same_bytes_under_another_hash_seed(pendulum):
    code = (
        "import importlib.util, sys, hashlib\n"
        "spec = importlib.util.spec_from_file_location('cases', sys.argv[1])\n"
        "cases = importlib.util.module_from_spec(spec); sys.modules['cases'] = cases\n"
        "spec.loader.exec_module(cases)\n"
        "from mb2fmu.report import render_validation_page\n"
        "c = cases._case(outputs=5)\n"
        "page = render_validation_page(c.definition, c.equations, c.interface, c.result)\n"
        "print(hashlib.sha256(page).hexdigest())\n"
    )
    script = [sys.executable, "-c", code, str(Path(__file__).parents[1] / "conftest.py")]
    environment = os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(script, capture_output=True, text=True, check=True, env=environment, timeout=120)
    assert done.stdout.strip() == hashlib.sha256(page_of(pendulum(outputs=5))).hexdigest()


@pytest.mark.repeats
def test_a_hundred_variables_of_a_hundred_thousand_points_stay_small(pendulum):
    case = pendulum(outputs=98, points=100_000)
    page = page_of(case)
    assert len(page) < 5_000_000
    assert len(parse(page).findall(".//figure[@id='variable-99']")) == 1


@pytest.fixture(scope="module")
def motion():
    """A pendulum on a moving pivot, and its reference a little beside it."""
    mechanism = mechanism_of(moving_pivot())
    scene = visualization.build_scene(mechanism, formulate(mechanism, "kane"))
    time = np.linspace(0, 3, 400)
    states = np.stack([np.sin(time), np.cos(time)], axis=1)
    p = np.array([parameter.start for parameter in scene.parameters])
    found, reference = (visualization.StateTrajectory(time, k * states, np.zeros((400, 0)), p) for k in (1.0, 1.03))
    return visualization.draw_motion(scene, found, reference), visualization.PlotSignals(
        ("q1", "u1"), ("rad", "rad/s"), states
    )


def moving_page(case, motion, limit=None):
    return render_validation_page(
        case.definition, case.equations, case.interface, case.result, motion=motion, limit=limit
    )


def test_two_pages_share_their_figures(pendulum, motion, monkeypatch):
    case, drawn = pendulum(), []
    for name in ("draw_trajectory_groups", "draw_invariant_charts", "render_print_picture"):
        module = validation_page if name == "render_print_picture" else validation_page.validation_sections
        draw = getattr(module, name)

        def count(*given, name=name, draw=draw, **options):
            drawn.append(name)
            return draw(*given, **options)

        monkeypatch.setattr(module, name, count)
    figures = validation_page.ValidationFigures(case.definition, case.equations, case.result, motion)
    arguments = (case.definition, case.equations, case.interface, case.result)
    pages = [render_validation_page(*arguments, motion=motion, figures=figures) for _ in range(2)]
    assert sorted(drawn) == ["draw_invariant_charts", "draw_trajectory_groups", "render_print_picture"]
    assert pages[0] == pages[1] == moving_page(case, motion)


def test_with_a_motion_only_its_two_scripts_may_run_too(pendulum, motion):
    text = moving_page(pendulum(description=HOSTILE, diagram=HOSTILE), motion).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    allowed = re.search(r"script-src (.*)$", policy)[1].split()
    run = scripts_of(text)
    assert len(run) == 2
    assert {f"'sha256-{digest}'" for digest in run} < set(allowed)
    assert len(allowed) == 3  # the third one is three.js, which the viewer unpacks
    assert text.index('id="motion"') < text.index('id="errors"')
    assert "Permission is hereby granted" in text


@pytest.mark.parametrize("limit", [*by_night(700_000), 500_000])
def test_a_page_for_a_fmu_keeps_its_limit_with_the_motion_in_it(limit, pendulum, motion):
    """Fifty variables: lines are thinned first, then the best variables are listed without a chart."""
    case = pendulum(outputs=48, points=1_000, failing=("y20",))
    page = moving_page(case, motion, limit)
    assert len(page) <= limit
    assert b'class="animation-data"' in page
    assert b'id="variable-21"' in page  # the one that failed is drawn in any case
    root = html.fromstring(page.decode())
    rows = root.findall(".//section[@aria-labelledby='errors']//tbody/tr")
    linked = {a.get("href")[1:] for a in root.findall(".//section[@aria-labelledby='errors']//tbody//a")}
    assert len(rows) == 50
    assert linked == {f.get("id") for f in root.iter("figure") if (f.get("id") or "").startswith("variable-")}
    assert (len(linked) < 50) == (limit < 600_000)


def test_who_ran_the_fmu_is_said(pendulum):
    case = pendulum()
    root = parse(page_of(case))
    rows = root.findall(".//section[@aria-labelledby='conformance']//tbody/tr")
    assert rows[0].find("th").text.endswith("Co-Simulation")
    steps = len(case.result.simulation.time) - 1
    assert f"{steps} steps to" in "".join(rows[0].itertext())


def test_chromium_shows_the_page_without_a_word(pendulum, motion, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed on this machine")
    (tmp_path / "page.html").write_bytes(moving_page(pendulum(failing=("y1",)), motion))
    command = [browser, "--headless=new", "--no-sandbox", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'user'}"]
    command += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--virtual-time-budget=1000"]
    command += ["--disable-gpu-compositing"]  # half of the time; the driver says that this stalls
    command += ["--enable-logging=stderr", "--v=0", "--dump-dom", (tmp_path / "page.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "GL Driver Message" not in line]
    assert said == []
    shown = html.fromstring(done.stdout)
    assert shown.get_element_by_id("verdict").text_content().split()[0] == "Failed"
    assert len(shown.findall(".//svg[@class='chart']")) == 7
    assert shown.find_class("animation")[0].get("data-state") == "ready"


_READER = """
const said = {}, charts = [...document.querySelectorAll("figure.card svg.chart")];
const point = (chart, type, part) => {
  const box = chart.getBoundingClientRect(), x = box.left + box.width * (50 + 382 * part) / 440;
  chart.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: box.top + 50, pointerId: 1, bubbles: true }));
};
const chart = document.querySelector("#variable-0 svg.chart"), output = document.querySelector("#variable-0 .said");
chart.setPointerCapture = () => {};
point(chart, "pointermove", .25);
said.whole = output.textContent;
for (const [type, part] of [["pointerdown", .2], ["pointermove", .3], ["pointerup", .3]]) point(chart, type, part);
point(chart, "pointermove", .5);
said.zoomed = output.textContent;
const table = document.querySelector("#errors ~ .scroll table"), head = table.tHead.rows[0].cells[2];
const ratios = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[2].querySelector("data").value));
head.querySelector("button").click();
said.rising = ratios();
head.querySelector("button").click();
said.falling = ratios();
const visible = () => [...table.tBodies[0].rows].filter((row) => getComputedStyle(row).display !== "none").length;
said.folded = visible();
const filter = document.querySelector("#errors ~ .tools input");
filter.value = "y1";
filter.dispatchEvent(new Event("input"));
said.found = visible();
document.title = JSON.stringify(said);
"""


def test_in_a_browser_charts_are_read_off_and_tables_sorted(pendulum, tmp_path):
    """What the script reads off a chart is the reference's value, zoomed or not; rows are sorted as numbers."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed on this machine")
    case = pendulum(outputs=18, failing=("y5",))
    text = page_of(case).decode()
    text = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text
    )  # the next script is not the page's own
    path = tmp_path / "page.html"
    path.write_text(text.replace("</body>", f"<script>{_READER}</script></body>"), encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
    command = [browser, *options, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    said = json.loads(html.fromstring(done.stdout).findtext(".//title"))
    reference = case.result.reference.trajectory
    name, stop = case.result.variables[0].name, reference.time[-1]
    for text, part in ((said["whole"], 0.25), (said["zoomed"], 0.25)):  # the middle of 0.2 to 0.3
        found = float(re.search(r"reference (−?[\d.e−]+)", text)[1].replace("−", "-"))
        true = np.interp(part * stop, reference.time, reference[name])
        assert found == pytest.approx(true, abs=2e-3 * np.ptp(reference[name]))
    assert said["rising"] == sorted(said["rising"])
    assert said["falling"] == sorted(said["rising"], reverse=True)
    assert len(said["rising"]) == 20
    assert said["folded"] == 12
    assert said["found"] == sum("y1" in v.name for v in case.result.variables)
