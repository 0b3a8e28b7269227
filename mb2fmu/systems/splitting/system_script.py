"""``write_system_script``: the Python file that couples the FMUs of a cut model, with the whole as the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mb2fmu.systems.splitting.part_mechanisms import MechanismPart


@dataclass(frozen=True, slots=True)
class SystemRunSettings:
    """Settings of the system's run.

    Attributes:
        stop: In s.
        step: Communication step in s.
        tolerance: Relative, of the units.
        loop: Whether outputs and inputs form an algebraic loop.
        delay: Of a line, in s; 0: there is none.
        bonds: (name, power into one side, into the other).
    """

    stop: float
    step: float
    tolerance: float
    loop: bool
    delay: float = 0.0
    bonds: tuple[tuple[str, str, str], ...] = ()


def write_system_script(
    name: str,
    title: str,
    made: Sequence[MechanismPart],
    whole: str,
    arguments: Mapping[str, Any],
    run: SystemRunSettings,
) -> str:
    """Return the text of the file.

    Args:
        name: Of the system.
        title: One line.
        made: The parts; their units are ``<model name>.fmu`` beside the file.
        whole: Path of the whole's model file, from the file's folder.
        arguments: Of its function.
        run: How it is run.
    """
    units = [f'    system.component("{part.name}", "{part.definition.name}.fmu")' for part in made]
    late = f", delay={run.delay!r}" if run.delay else ""
    joined = [
        f'    system.connect("{part.name}.{part.terminals[other.name]}", "{other.name}.{other.terminals[part.name]}"'
        f"{late})"
        for k, part in enumerate(made)
        for other in made[k + 1 :]
        if other.name in part.terminals and part.name in other.terminals
    ]
    bonds = [f'    system.bond("{bond}", "{one}", "{other}")' for bond, one, other in run.bonds]
    same = [f'        "{part.name}.{own}": "{of_whole}",' for part in made for own, of_whole in part.same.items()]
    given = f", arguments={dict(arguments)!r}" if arguments else ""
    loops = ' loops="solve",' if run.loop else ""
    lines = [
        f'"""{title}"""', "", "from mb2fmu import CoupledSystem", "", "",
        (f"def coupled(step: float = {run.step!r}, stop: float = {run.stop!r}, order: int = 2, passes: int = 20)"
        " -> CoupledSystem:"),
        '    """The FMUs, connected; the model that was cut is the truth."""',
        f'    system = CoupledSystem("{name}", description="{title}")',
        *units, *joined, *bonds, "    same = {", *same, "    }",
        f"    system.monolith({json.dumps(whole)}, same{given})",
        "    system.experiment(",
        (f"        stop=stop, step=step, tolerance={run.tolerance!r}, order=order, passes=passes, "
        f"converged=1e-10,{loops}"),
        "    )", "    return system", "",
    ]  # fmt: skip
    return "\n".join(lines)
