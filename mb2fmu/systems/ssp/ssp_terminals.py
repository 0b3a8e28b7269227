"""Terminals in an ``.ssp``, by the draft for version 2.1 of SSP's working group.

SSP 2.0 (2024) has none. The draft is pull request 120 of modelica/ssp-standard, "Add terminal support", at commit
a76edd21f36058b4015f6c436eb3980c7f7d7f04 (2026-03-19); its schema is in ``schema/ssp2.1-draft``. It has global types of
terminals, connectors of kind ``terminal`` and connections between these, which follow FMI's own rules. It has no place
for what is a flow: that stands in the units' ``terminalsAndIcons.xml``, and so does which variable a member is.
"""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.systems.wired_system import Joined


@dataclass(frozen=True)
class TerminalType:
    """Connected terminals with the same members.

    Attributes:
        name: Of the type.
        rule: Which members must meet: FMI's ``bus`` connects those that both sides have.
        members: (name, unit) of each.
        used: (component, terminal) of those that have this type.
    """

    name: str
    rule: str
    members: tuple[tuple[str, str], ...]
    used: tuple[tuple[int, str], ...]


def terminal_types(joined: Joined) -> tuple[TerminalType, ...]:
    """Return the types of all connected terminals, in the order of connections; named after their first one."""
    found: dict[tuple[tuple[str, str], ...], dict[tuple[int, str], None]] = {}
    for link in joined.terminals:
        for k, terminal in link.ends:
            component = joined.components[k]
            units = ((each.name, component.unit(each.variable)) for each in component.terminals[terminal]
                     if each.variable in component.variables)  # fmt: skip
            members = tuple((name, unit.name if unit else "") for name, unit in units)
            found.setdefault(members, {})[k, terminal] = None
    made = []
    for members, used in found.items():
        k, terminal = next(iter(used))
        made.append(TerminalType(f"{joined.components[k].name}.{terminal}", "bus", members, tuple(used)))
    return tuple(made)
