"""Order of evaluation: levels of inputs at one instant, algebraic loops by name, order of components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.systems.port_and_bond_records import SystemWiring


@dataclass(frozen=True, slots=True)
class InputEvaluationLevels:
    """Inputs in the order in which they become known at one instant.

    Attributes:
        groups: Groups of inputs; those of one group need only inputs of groups before it. A group that is a loop needs
            itself.
        loops: Which groups are algebraic loops.
    """

    groups: tuple[tuple[int, ...], ...]
    loops: tuple[bool, ...]


def order_inputs_by_level(wiring: SystemWiring) -> InputEvaluationLevels:
    """Return the order in which inputs become known."""
    needed_inputs = _find_input_to_input_dependencies(wiring)
    components = find_strongly_connected_components(range(len(wiring.inputs)), needed_inputs)
    groups: list[tuple[int, ...]] = []
    loops: list[bool] = []
    level_of_input: dict[int, int] = {}
    direct_inputs_by_level: dict[int, list[int]] = {}
    loops_by_level: list[tuple[int, tuple[int, ...]]] = []
    for component in components:
        is_loop = len(component) > 1 or component[0] in needed_inputs[component[0]]
        level = 1 + max(
            (
                level_of_input[needed_input]
                for input_index in component
                for needed_input in needed_inputs[input_index]
                if needed_input not in component
            ),
            default=-1,
        )
        level_of_input.update(dict.fromkeys(component, level))
        if is_loop:
            loops_by_level.append((level, component))
        else:
            direct_inputs_by_level.setdefault(level, []).append(component[0])
    for level in sorted({*direct_inputs_by_level, *(level for level, _ in loops_by_level)}):
        for group, is_loop in [
            (tuple(direct_inputs_by_level.get(level, ())), False),
            *((loop, True) for loop_level, loop in loops_by_level if loop_level == level),
        ]:
            if group:
                groups.append(group)
                loops.append(is_loop)
    return InputEvaluationLevels(tuple(groups), tuple(loops))


def _find_input_to_input_dependencies(wiring: SystemWiring) -> Mapping[int, frozenset[int]]:
    """Return input → inputs (of the component that feeds it) on which it depends at the same instant."""
    source_of_input = {link.target: link.source for link in wiring.links if not link.delay}
    return {
        target: frozenset(
            input_index
            for input_index, output_index in wiring.feedthrough
            if target in source_of_input and output_index == source_of_input[target]
        )
        for target in range(len(wiring.inputs))
    }


def find_strongly_connected_components(
    nodes: Iterable[int], predecessors: Mapping[int, Iterable[int]]
) -> list[tuple[int, ...]]:
    """Return strongly connected components, dependencies first (Tarjan 1972, SIAM J. Comput. 1, 146-160)."""
    index: dict[int, int] = {}
    lowest_link: dict[int, int] = {}
    stack: list[int] = []
    components: list[tuple[int, ...]] = []

    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(sorted(predecessors[root])))]
        index[root] = lowest_link[root] = len(index)
        stack.append(root)
        while work:
            node, remaining_predecessors = work[-1]
            for predecessor in remaining_predecessors:
                if predecessor not in index:
                    index[predecessor] = lowest_link[predecessor] = len(index)
                    stack.append(predecessor)
                    work.append((predecessor, iter(sorted(predecessors[predecessor]))))
                    break
                if predecessor in stack:
                    lowest_link[node] = min(lowest_link[node], index[predecessor])
            else:
                work.pop()
                if work:
                    lowest_link[work[-1][0]] = min(lowest_link[work[-1][0]], lowest_link[node])
                if lowest_link[node] == index[node]:
                    component = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    components.append(tuple(sorted(component)))
    return components


def format_algebraic_loop(wiring: SystemWiring, group: Sequence[int]) -> str:
    """Return an algebraic loop by the names along it: ``a.F → a.acceleration → b.acceleration → b.F → a.F``."""
    needed_inputs = _find_input_to_input_dependencies(wiring)
    source_of_input = {link.target: link.source for link in wiring.links}
    # One way round: from an input back to itself by inputs of the group.
    cycle = _find_shortest_cycle(needed_inputs, group)
    names = [wiring.input_name(cycle[0])]
    for input_index in cycle[1:]:
        names += [wiring.output_name(source_of_input[input_index]), wiring.input_name(input_index)]
    return " → ".join(names)


def _find_shortest_cycle(needed_inputs: Mapping[int, frozenset[int]], group: Sequence[int]) -> list[int]:
    """Return a shortest cycle through the first input of a loop, in the direction of the values."""
    start, members = group[0], set(group)
    paths: list[list[int]] = [[start]]
    visited: set[int] = set()
    while paths:
        path = paths.pop(0)
        for predecessor in sorted(needed_inputs[path[0]] & members):
            if predecessor == start:
                return [start, *path]
            if predecessor not in visited:
                visited.add(predecessor)
                paths.append([predecessor, *path])
    return [start]


def order_gauss_seidel_components(wiring: SystemWiring, sequence: Sequence[str] = ()) -> tuple[int, ...]:
    """Return the order of components for Gauss–Seidel passes.

    Args:
        wiring: The system.
        sequence: Names in the user's order; (): by dependencies. Components come after those that feed them; in a ring
            of components those with feedthrough come last, since they can use new values at
            once; then in the order of declaration.

    Raises:
        ValueError: If ``sequence`` does not name every component once.
    """
    if sequence:
        if sorted(sequence) != sorted(wiring.components):
            raise ValueError(f"the sequence must name each of {', '.join(wiring.components)} once")
        return tuple(wiring.components.index(name) for name in sequence)
    indices = range(len(wiring.components))
    feeding_components: dict[int, set[int]] = {component: set() for component in indices}
    for link in wiring.links:
        if not link.delay:
            feeding_components[wiring.inputs[link.target].component].add(wiring.outputs[link.source].component)
    linked_outputs = {link.source for link in wiring.links}
    feedthrough_counts = [
        sum(
            output_index in linked_outputs and wiring.outputs[output_index].component == component
            for _, output_index in wiring.feedthrough
        )
        for component in indices
    ]
    order: list[int] = []
    for members in find_strongly_connected_components(indices, feeding_components):
        order += sorted(members, key=lambda k: (feedthrough_counts[k] > 0, k))
    return tuple(order)
