"""Order of evaluation: levels of inputs at one instant, algebraic loops by name, order of components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.systems.resolved_system import SystemWiring


@dataclass(frozen=True, slots=True)
class EvaluationLevels:
    """Inputs in the order in which they become known at one instant.

    Attributes:
        groups: Of inputs; those of one group need only what groups before it have set. A group that is a loop needs
            itself.
        loops: Which groups are algebraic loops.
    """

    groups: tuple[tuple[int, ...], ...]
    loops: tuple[bool, ...]


def order_inputs_by_level(wiring: SystemWiring) -> EvaluationLevels:
    """Return the order in which inputs become known."""
    needs = find_needed_inputs(wiring)
    parts = find_strongly_connected_components(range(len(wiring.inputs)), needs)
    groups: list[tuple[int, ...]] = []
    loops: list[bool] = []
    depth: dict[int, int] = {}
    flat: dict[int, list[int]] = {}
    rings: list[tuple[int, tuple[int, ...]]] = []
    for part in parts:
        ring = len(part) > 1 or part[0] in needs[part[0]]
        level = 1 + max((depth[k] for each in part for k in needs[each] if k not in part), default=-1)
        depth.update(dict.fromkeys(part, level))
        if ring:
            rings.append((level, part))
        else:
            flat.setdefault(level, []).append(part[0])
    for level in sorted({*flat, *(level for level, _ in rings)}):
        for group, ring in [(tuple(flat.get(level, ())), False), *((p, True) for at, p in rings if at == level)]:
            if group:
                groups.append(group)
                loops.append(ring)
    return EvaluationLevels(tuple(groups), tuple(loops))


def find_needed_inputs(wiring: SystemWiring) -> Mapping[int, frozenset[int]]:
    """Return input → inputs (of the component that feeds it) on which it depends at the same instant."""
    source = {link.target: link.source for link in wiring.links if not link.delay}
    return {
        k: frozenset(i for i, j in wiring.feedthrough if k in source and j == source[k])
        for k in range(len(wiring.inputs))
    }


def find_strongly_connected_components(
    nodes: Iterable[int], needs: Mapping[int, Iterable[int]]
) -> list[tuple[int, ...]]:
    """Return strongly connected components, dependencies first (Tarjan 1972, SIAM J. Comput. 1, 146-160)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[tuple[int, ...]] = []

    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(sorted(needs[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(needs[other]))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    found.append(tuple(sorted(part)))
    return found


def format_algebraic_loop(wiring: SystemWiring, group: Sequence[int]) -> str:
    """Return an algebraic loop by the names along it: ``a.F → a.acceleration → b.acceleration → b.F → a.F``."""
    needs = find_needed_inputs(wiring)
    source = {link.target: link.source for link in wiring.links}
    # One way round: from an input back to itself by inputs of the group.
    way = _way_round(needs, group)
    names = [wiring.input_name(way[0])]
    for k in way[1:]:
        names += [wiring.output_name(source[k]), wiring.input_name(k)]
    return " → ".join(names)


def _way_round(needs: Mapping[int, frozenset[int]], group: Sequence[int]) -> list[int]:
    """Return a shortest cycle through the first input of a loop, in the direction of the values."""
    start, inside = group[0], set(group)
    ways: list[list[int]] = [[start]]
    seen: set[int] = set()
    while ways:
        way = ways.pop(0)
        for other in sorted(needs[way[0]] & inside):
            if other == start:
                return [start, *way]
            if other not in seen:
                seen.add(other)
                ways.append([other, *way])
    return [start]


def order_components(wiring: SystemWiring, wanted: Sequence[str] = ()) -> tuple[int, ...]:
    """Return the order of components for Gauss–Seidel passes.

    Args:
        wiring: The system.
        wanted: Names in the user's order; (): by dependencies. Components come after those that feed them; in a ring
            of components those come last whose outputs depend on inputs at the same moment, since they can use what is
            new at once, then in the order of declaration.

    Raises:
        ValueError: If ``wanted`` does not name every component once.
    """
    if wanted:
        if sorted(wanted) != sorted(wiring.components):
            raise ValueError(f"the sequence must name each of {', '.join(wiring.components)} once")
        return tuple(wiring.components.index(name) for name in wanted)
    count = range(len(wiring.components))
    feeds: dict[int, set[int]] = {k: set() for k in count}
    for link in wiring.links:
        if not link.delay:
            feeds[wiring.inputs[link.target].component].add(wiring.outputs[link.source].component)
    linked = {link.source for link in wiring.links}
    through = [sum(j in linked and wiring.outputs[j].component == k for _, j in wiring.feedthrough) for k in count]
    order: list[int] = []
    for part in find_strongly_connected_components(count, feeds):
        order += sorted(part, key=lambda k: (through[k] > 0, k))
    return tuple(order)
