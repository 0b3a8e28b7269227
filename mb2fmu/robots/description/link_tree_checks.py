"""Check that links and joints form one tree: names, ends, roots, cycles, mimics; all faults at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from mb2fmu.robots.description.inertia_check_and_repair import INERTIA_REMEDY, find_inertia_faults
from mb2fmu.robots.description.robot_description import RobotDescription, RobotJoint
from mb2fmu.robots.file_formats.strict_xml import XmlFaultCollector

_MAX_LISTED_NAMES = 12
"""Roots that a message names."""


def check_and_sort_link_tree(
    description: RobotDescription, faults: XmlFaultCollector, reported_names: Collection[str] = ()
) -> RobotDescription:
    """Return the description with its root, joints of parents before those of their children.

    Args:
        description: As read, without root.
        faults: Found so far; more are added, and all are raised.
        reported_names: Names that the reader has found twice, and reported.

    Raises:
        ModelError: If there are any.
    """
    links = {link.name for link in description.links}
    if not description.links:
        faults.add(0, "the robot has no link", 'add <link name="…">')
    for word, items in (("links", description.links), ("joints", description.joints)):
        _check_duplicates(word, [(item.name, item.line) for item in items if item.name not in reported_names], faults)
    doubled = {name for name, count in Counter(link.name for link in description.links).items() if count > 1}
    for joint in description.joints:
        _check_ends(joint, links, doubled, faults)
    moved: dict[str, RobotJoint] = {}
    whole = [joint for joint in description.joints if joint.child in links and joint.parent != joint.child]
    for joint in whole:
        if joint.child in moved:
            what = f"link {joint.child} is the child of {moved[joint.child].name} and of {joint.name}"
            remedy = "a link has one parent; close the loop in robot.toml: [[loops]]"
            faults.add(joint.line, what, remedy)
        moved.setdefault(joint.child, joint)
    roots = list({link.name: link for link in reversed(description.links) if link.name not in moved}.values())[::-1]
    ordered = _order_from_roots([link.name for link in roots], description.joints)
    named = [link for link in roots if link.name]
    broken = len(description.joints) - len(whole)  # each is reported; it may be what leaves a link without parent
    if len(named) - 1 > broken:
        names = ", ".join(link.name for link in named[:_MAX_LISTED_NAMES]) + (
            ", …" if len(named) > _MAX_LISTED_NAMES else ""
        )
        faults.add(named[1].line, f"{len(named)} links have no parent: {names}", "join them: a robot has one root")
    _check_cycles(moved, faults)
    _check_mimics(description.joints, faults)
    if faults.faults:
        _check_masses(description, faults)
    faults.raise_collected()
    return replace(description, root=roots[0].name, joints=ordered, notes=tuple(faults.notes))


def _check_masses(description: RobotDescription, faults: XmlFaultCollector) -> None:
    """Add a fault for each negative mass, so that all faults of a file are reported together.

    In a file that is otherwise right it is for ``--inertia`` to say what becomes of it.
    """
    for link in description.links:
        if link.inertial is not None and link.inertial.mass < 0:
            what = f"link {link.name} cannot be a body: {find_inertia_faults(link.inertial)[0]}"
            faults.add(link.inertial.line, what, INERTIA_REMEDY)


def _check_ends(joint: RobotJoint, links: set[str], doubled: set[str], faults: XmlFaultCollector) -> None:
    """Add a fault for joints whose links are missing or identical (doubled names are reported elsewhere)."""
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name and name not in links:
            faults.add(joint.line, f"the {end} of joint {joint.name} is {name}, which is no link", "correct the name")
    if joint.parent and joint.parent == joint.child and joint.parent not in doubled:
        faults.add(joint.line, f"joint {joint.name} goes from {joint.parent} to itself", "give it two links")


def _check_cycles(moved: dict[str, RobotJoint], faults: XmlFaultCollector) -> None:
    """Add one fault for each cycle of joints; joints that only hang on one are not part of it.

    Args:
        moved: Link → the joint that moves it.
        faults: Take them.
    """
    seen: set[str] = set()
    for start in moved:
        way: list[str] = []
        link = start
        while link in moved and link not in seen:
            seen.add(link)
            way.append(link)
            link = moved[link].parent
        circle = [moved[each] for each in reversed(way[way.index(link) :])] if link in way else []
        if len(circle) > 1:
            first = min(range(len(circle)), key=lambda k: circle[k].line)
            # a reader adds joints of its own, and calls them "joint (what for)"
            names = [*dict.fromkeys(joint.name.partition(" (")[0] for joint in (*circle[first:], *circle[:first]))]
            what = f"joints move each other in a circle: {' → '.join([*names, names[0]])}"
            faults.add(circle[first].line, what, "close loops in robot.toml: [[loops]]")


def _check_duplicates(word: str, named: Iterable[tuple[str, int]], faults: XmlFaultCollector) -> None:
    """Add a fault for each name that occurs twice, at its second line."""
    named = list(named)
    for name, count in Counter(name for name, _ in named).items():
        if count > 1 and name:
            lines = [line for other, line in named if other == name]
            faults.add(lines[1], f"{count} {word} are called {name}", "rename all but one")


def _order_from_roots(roots: list[str], joints: tuple[RobotJoint, ...]) -> tuple[RobotJoint, ...]:
    """Return the joints that a root reaches, parents first, siblings in the order of the file."""
    below: dict[str, list[RobotJoint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    ordered, reached = [], set(roots)
    stack = [joint for root in reversed(roots) for joint in reversed(below.get(root, []))]
    while stack:
        joint = stack.pop()
        if joint.child in reached:
            continue
        reached.add(joint.child)
        ordered.append(joint)
        stack += reversed(below.get(joint.child, []))
    return tuple(ordered)


def _check_mimics(joints: tuple[RobotJoint, ...], faults: XmlFaultCollector) -> None:
    """Add a fault for mimics that do not lead to an independent joint with one coordinate."""
    known = {joint.name: joint for joint in joints}
    for joint in joints:
        if joint.mimic is None:
            continue
        seen, current = [joint.name], joint
        while current.mimic is not None:
            following = current.mimic.joint
            if following not in known:
                if current is joint and following:
                    what = f"joint {joint.name} mimics {following}, which is no joint"
                    faults.add(joint.line, what, "correct the name")
                break
            if following in seen:
                cycle = " → ".join([*seen[seen.index(following) :], following])
                if joint.name == min(seen[seen.index(following) :]):
                    faults.add(joint.line, f"joints mimic each other in a circle: {cycle}", "let one move by itself")
                break
            seen.append(following)
            current = known[following]
            if current.kind not in {"revolute", "prismatic", "fixed"}:
                what = f"joint {joint.name} mimics {following}, which is {current.kind}"
                faults.add(joint.line, what, "mimic a joint with one coordinate")
