"""Leave out signs that can be held at zero: dry friction where nothing slides, for a look at small motions there."""

from __future__ import annotations

from collections.abc import Collection

from mb2fmu.compiler.events.switch_to_mode_conversion import find_sticking_signs, format_program_expression
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_copy import CopiedProgramNodes
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import ScalarProgram

SLIP_ENTRY = "slip"
"""Arguments of the signs that can be held, in their order; the labels are their expressions."""


def remove_friction_signs(program: ScalarProgram, removed: Collection[int]) -> ScalarProgram:
    """Return the program with some signs replaced by zero, and an entry ``slip``; the very same one if it has no signs.

    Args:
        program: As it was lowered.
        removed: Places of the signs among those that can be held.
    """
    signs = find_sticking_signs(program)
    if not signs:
        return program
    builder = ProgramBuilder(program.layout)
    copy = _ProgramCopyWithZeroSigns(program, builder, {signs[place] for place in removed})
    arguments = [int(program.a[sign]) for sign in signs]
    labels = [format_program_expression(program, argument) for argument in arguments]
    builder.entry(SLIP_ENTRY, labels, [copy.node[argument] for argument in arguments])
    return prune_program(builder.build())


class _ProgramCopyWithZeroSigns(CopiedProgramNodes):
    """A copy in which some signs are zero."""

    def __init__(self, program: ScalarProgram, builder: ProgramBuilder, removed: Collection[int]) -> None:
        self._removed = removed
        self._zero = builder.constant(0.0)  # nothing is adopted: nodes change
        super().__init__(program, builder, [name for name in program.entries if name not in {"switches", "break_away"}])

    def _copied(self, node: int) -> int:
        """Return the copy of a node, or zero."""
        return self._zero if node in self._removed else super()._copied(node)
