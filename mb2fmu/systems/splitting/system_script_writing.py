"""``form_coupled_system_script``: the Python file that couples the FMUs of a cut model, the reference is that model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mb2fmu.systems.splitting.part_mechanisms import CutMechanismPart


@dataclass(frozen=True, slots=True)
class SystemRunSettings:
    """Settings of the system's run.

    Attributes:
        stop: Stop time in s.
        step: Communication step in s.
        tolerance: Relative tolerance of the FMUs.
        has_algebraic_loop: Whether outputs and inputs form an algebraic loop.
        delay: Delay of a transmission line, in s; 0: there is none.
        bonds: (name, power into one side, power into the other).
    """

    stop: float
    step: float
    tolerance: float
    has_algebraic_loop: bool
    delay: float = 0.0
    bonds: tuple[tuple[str, str, str], ...] = ()


def form_coupled_system_script(
    name: str,
    title: str,
    parts: Sequence[CutMechanismPart],
    model_file: str,
    arguments: Mapping[str, Any],
    run_settings: SystemRunSettings,
) -> str:
    """Return the text of the file.

    Args:
        name: Name of the system.
        title: Description, one line.
        parts: The parts; their FMUs are ``<model name>.fmu`` beside the file.
        model_file: Path of the uncut model's file, relative to the file's folder.
        arguments: Arguments of that file's function.
        run_settings: Settings of the system's run.
    """
    component_lines = [f'    system.component("{part.name}", "{part.definition.name}.fmu")' for part in parts]
    delay_argument = f", delay={run_settings.delay!r}" if run_settings.delay else ""
    connection_lines = [
        f'    system.connect("{part.name}.{part.terminals[other.name]}", "{other.name}.{other.terminals[part.name]}"'
        f"{delay_argument})"
        for index, part in enumerate(parts)
        for other in parts[index + 1 :]
        if other.name in part.terminals and part.name in other.terminals
    ]
    bond_lines = [
        f'    system.bond("{bond}", "{inner_power}", "{other}")' for bond, inner_power, other in run_settings.bonds
    ]
    equal_variable_lines = [
        f'        "{part.name}.{variable}": "{reference_name}",'
        for part in parts
        for variable, reference_name in part.reference_names.items()
    ]
    arguments_argument = f", arguments={dict(arguments)!r}" if arguments else ""
    loops_argument = ' loops="solve",' if run_settings.has_algebraic_loop else ""
    lines = [
        f'"""{title}"""', "", "from mb2fmu import CoupledSystem", "", "",
        (f"def coupled(step: float = {run_settings.step!r}, stop: float = {run_settings.stop!r}, "
        "order: int = 2, passes: int = 20) -> CoupledSystem:"),
        '    """Return the connected FMUs; the uncut model is the reference."""',
        f'    system = CoupledSystem("{name}", description="{title}")',
        *component_lines, *connection_lines, *bond_lines, "    same = {", *equal_variable_lines, "    }",
        f"    system.monolith({json.dumps(model_file)}, same{arguments_argument})",
        "    system.experiment(",
        (f"        stop=stop, step=step, tolerance={run_settings.tolerance!r}, order=order, passes=passes, "
        f"converged=1e-10,{loops_argument}"),
        "    )", "    return system", "",
    ]  # fmt: skip
    return "\n".join(lines)
