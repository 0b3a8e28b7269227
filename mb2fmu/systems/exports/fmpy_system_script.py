"""Write the system as a Python script that needs only FMPy."""

from __future__ import annotations

from mb2fmu.fmu.packaged_templates import make_template_environment
from mb2fmu.systems.master.input_evaluation_order import order_gauss_seidel_components, order_inputs_by_level
from mb2fmu.systems.wired_system import WiredSystem


def form_fmpy_script(wired_system: WiredSystem, folder: str) -> str:
    """Return a script that runs the system by fmpy.

    Args:
        wired_system: The system.
        folder: Folder of the FMUs, relative to the script's.
    """
    wiring, run_settings = wired_system.wiring, wired_system.system.run_settings
    component_order = order_gauss_seidel_components(wiring, run_settings.stepping.sequence)
    link_of_target = {link.target: link for link in wiring.links}
    links = []
    for group in order_inputs_by_level(wiring).groups:
        for target in group:
            link = link_of_target[target]
            source = wiring.outputs[link.source]
            links.append(
                (wiring.components[source.component], source.name, wiring.components[wiring.inputs[target].component],
                 wiring.inputs[target].name, link.factor, link.offset, link.delay, link.start)
            )  # fmt: skip
    template = make_template_environment("mb2fmu.systems").get_template("fmpy_system_script.py.jinja")
    return template.render(
        name=wired_system.system.name,
        components=[
            (wiring.components[index], f"{folder}{wiring.components[index]}.fmu", dict(wired_system.values[index]))
            for index in component_order
        ],
        links=links,
        recorded=[(wiring.components[port.component], port.name) for port in wiring.outputs],
        step=repr(run_settings.stepping.step),
        stop=repr(run_settings.stop),
        tolerance=repr(run_settings.tolerance),
    )
