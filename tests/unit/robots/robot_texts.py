"""Robot descriptions for tests, small enough to be read."""

from __future__ import annotations

INERTIAL = (
    '<inertial><origin xyz="{x} 0.02 0.15" rpy="0.1 0.2 0.3"/><mass value="{m}"/>'
    '<inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.0015" izz="0.02"/></inertial>'
)


def link(name: str, m: float = 1.0, x: float = 0.01) -> str:
    """A link with mass; a line."""
    return f'<link name="{name}">{INERTIAL.format(m=m, x=x)}</link>\n'


def joint(name: str, kind: str, parent: str, child: str, more: str = "", axis: str = "0 0.6 0.8") -> str:
    """A joint; a line."""
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0.1 0 0.3" rpy="0.2 0.3 0"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{more}</joint>\n'


def robot(*parts: str, name: str = "test") -> str:
    """A whole file."""
    return f'<?xml version="1.0"?>\n<robot name="{name}">\n{"".join(parts)}</robot>\n'


ARM = robot(
    '<link name="base"/>\n',
    link("l1", 2.0),
    link("l2", 1.5, 0.05),
    link("l3", 0.7),
    link("tool", 0.2),
    link("l4", 0.4),
    joint("j1", "revolute", "base", "l1", '<limit lower="-2" upper="2" effort="50" velocity="9"/>'
          '<dynamics damping="0.3" friction="0.1"/>'),
    joint("j2", "continuous", "l1", "l2", '<dynamics damping="0.1"/>', axis="2 0 0"),
    joint("j3", "prismatic", "l2", "l3", '<limit lower="-9" upper="9" effort="20" velocity="9"/>', axis="0 0 -1"),
    joint("jf", "fixed", "l3", "tool"),
    joint("jm", "revolute", "l3", "l4", '<mimic joint="j1" multiplier="0.5" offset="0.1"/>'
          '<limit lower="-9" upper="9" effort="20" velocity="9"/>', axis="0 1 0"),
)  # fmt: skip
"""A turning, a turning, a sliding joint; a fixed one; one that mimics; nothing along coordinate axes."""
