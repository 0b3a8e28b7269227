"""What records look like in a notebook; the tutorial is run in tests/end_to_end."""

from __future__ import annotations

import contextlib
import html
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import cart_with_pathways, mechanism_of, sympy_rolling_disc
from representatives import by_night

import mb2fmu
from mb2fmu.mechanics.equations import latex_display
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.pipeline.run_and_report import notebook_displays


def alone() -> mb2fmu.Model:
    """A Lagrangian alone: nothing to be drawn."""
    q = me.dynamicsymbols("q")
    lagrangian = me.LagrangesMethod(q.diff() ** 2 / 2 + sm.cos(q), [q])
    model = mb2fmu.Model("Alone", lagrangian, description="<b>bare</b>")
    model.coordinate(q, 0.5, "rad", description="an <angle>")
    model.speed(q.diff(), 0.0, "rad/s")
    model.output("twice", 2 * q, "rad")
    model.experiment(stop=1.0, step=0.1)
    return model


def test_a_model_shows_what_it_declares() -> None:
    shown = alone()._repr_html_()
    assert "<b>" not in shown
    assert "an &lt;angle&gt;" in shown
    assert [html.unescape(name) for name in re.findall(r"<th[^>]*>([^<]*)</th>", shown)] == ["q", "q_dot", "twice"]


def test_a_simulation_is_a_table_where_nothing_can_be_drawn_and_a_closed_frame_where_it_can() -> None:
    simulated = mb2fmu.simulate(alone(), step=0.25)
    assert "twice" in simulated._repr_html_()
    assert simulated.time.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert simulated["twice"] == pytest.approx(2 * simulated["q"])
    with pytest.raises(KeyError, match="is none of q, q_dot, twice"):
        simulated["thrice"]
    model = cart_with_pathways()
    model.experiment(stop=0.1, step=0.05)
    framed = mb2fmu.simulate(model)._repr_html_()
    assert framed.startswith('<iframe class="mb2fmu" srcdoc=')
    assert 'sandbox="allow-scripts"' in framed
    assert framed.count("<script") == 1  # the one that hears how high the frame is; all else is the frame's, escaped
    assert "animation-data" in html.unescape(framed)


@contextlib.contextmanager
def loading_until_told() -> Iterator[str]:
    """A server at which ``/loaded`` waits for ``/told``, half a minute at most, so that a page is not read too soon.

    Frames that are closed off run in a process of their own, for which no browser waits.
    """
    notified = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/told":
                notified.set()
            else:
                notified.wait(30.0)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            notified.set()
            server.shutdown()
            thread.join()


def test_a_frame_becomes_as_high_as_its_page(tmp_path) -> None:
    """With the policy of the pages, which runs no other script, and closed off from the notebook."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed on this machine")
    reported = "default-src 'none'; style-src 'unsafe-inline'; script-src 'none'"
    policy = f'<meta http-equiv="Content-Security-Policy" content="{reported}">'
    frames = [
        notebook_displays._embed_page_in_frame(
            f"{policy}<body style='margin:0'><p style='margin:0;height:{high}px'></body>".encode(), "a", 300
        )
        for high in (700, 120)
    ]
    with loading_until_told() as server:
        watches = f"""<img src="{server}/loaded"><script>
            const frames = [...document.querySelectorAll("iframe")];
            const told = () => frames.every((frame) => frame.style.height !== "300px");
            const tell = () => told() && (new Image().src = "{server}/told");
            new MutationObserver(tell).observe(document.body, {{ subtree: true, attributes: true }});
            tell();</script>"""
        (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{''.join(frames)}{watches}</body>")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command = [browser, *options, (tmp_path / "notebook.html").as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert re.findall(r'<iframe class="mb2fmu"[^>]* style="[^"]*height: ?(\d+)px', shown) == ["700", "120"]


@pytest.mark.parametrize("build", [cart_with_pathways, *by_night(sympy_rolling_disc)])
def test_equations_are_one_formula_with_its_parts(build) -> None:
    mechanism = mechanism_of(build())
    shown = formulate(mechanism, "kane")._repr_latex_()
    assert shown.startswith("$\\displaystyle \\begin{aligned}")
    assert shown.endswith("\\end{aligned}$")
    assert shown.count("{") == shown.count("}")
    assert shown.count("\\begin{bmatrix}") == shown.count("\\end{bmatrix}") == 3
    for q in mechanism.q:
        assert f"\\dot{{{sm.latex(q)}}} &=" in shown


def test_names_of_several_letters_stand_upright() -> None:
    q, u, arm = sm.symbols("theta omega arm_tip_x")
    printer = latex_display._LatexEquationPrinter()
    assert printer.doprint(arm) == r"\mathrm{arm}_{\mathrm{tip\,x}}"
    assert printer.doprint(q * u) == r"\omega \theta"
    assert printer.doprint(sm.Symbol("m_b")) == "m_{b}"
    assert printer.doprint(sm.Symbol("mass")) == r"\mathrm{mass}"


def test_many_declarations_are_folded() -> None:
    model = alone()
    few = model._repr_html_()
    assert "<details>" not in few
    known = len(model.declared)
    for k in range(45 - known):
        model.parameter(sm.Symbol(f"p{k}"), 1.0, "1")
    many = model._repr_html_()
    head, _, rest = many.partition("<summary>5 more</summary>")
    assert (head.count("<tr>"), rest.count("<tr>")) == (40, 5)
