"""Make one mechanism of each part of a ``MechanismCut``; motions and forces of other parts are inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.mechanics.mechanism.records.prebuilt_mechanism_source import ReadyMadeMechanismSource
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.systems.splitting.exchanged_part_forces import list_exchanged_forces
from mb2fmu.systems.splitting.mechanism_cut_records import MechanismCut
from mb2fmu.systems.splitting.mechanism_part_variables import MechanismPartVariables
from mb2fmu.systems.splitting.split_part_draft import MechanismPartDraft
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings
from mb2fmu.systems.wired_system import CouplingError


@dataclass(frozen=True)
class CutMechanismPart:
    """One part of a cut mechanism.

    Attributes:
        name: Name of the component.
        definition: Model definition, ready for the pipeline.
        reference_names: Variable of the part → name of the same variable in the whole mechanism.
        terminals: Other part → name of the terminal with it.
        omitted_outputs: Outputs of the whole mechanism that the part cannot compute.
    """

    name: str
    definition: CheckedModel
    reference_names: Mapping[str, str]
    terminals: Mapping[str, str]
    omitted_outputs: tuple[str, ...]


def make_cut_mechanism_parts(cut: MechanismCut, settings: SplittingSettings) -> tuple[CutMechanismPart, ...]:
    """Return all parts of a cut mechanism.

    Raises:
        CouplingError: If a part needs a quantity that no input can provide.
    """
    forces = list_exchanged_forces(cut)
    drafts = [MechanismPartDraft(cut, number, settings, forces) for number in range(len(cut.part_names))]
    if faults := [fault for draft in drafts for fault in draft.find_faults()]:
        raise CouplingError(f"{cut.mechanism.declared.name} cannot be cut there:", faults)
    return tuple(_make_part(draft, drafts) for draft in drafts)


def _make_part(draft: MechanismPartDraft, drafts: Sequence[MechanismPartDraft]) -> CutMechanismPart:
    """Return the finished part."""
    variables = MechanismPartVariables(draft, drafts)
    mechanism = variables.make_mechanism()
    declared = mechanism.declared
    mechanics = ReadyMadeMechanismSource(
        kind=f"{draft.mechanism.declared.origin}, cut at {draft.cut.name}",
        coordinates=tuple(coordinate.symbol for coordinate in declared.coordinates),
        speeds=tuple(state.symbol for state in declared.speeds),
        ground=mechanism.frames[0].name,
        frames=tuple(frame.name for frame in mechanism.frames),
        mechanism=mechanism,
    )
    declared_fields = {name: getattr(declared, name) for name in declared.__dataclass_fields__}
    definition = CheckedModel(
        **declared_fields, mechanics=mechanics, constraint_forces=(), outputs=(), potential_energy=None
    )
    reference_names = {
        draft.declaration_of_state[state].name: draft.declaration_of_state[state].name  # as the model declares it
        for state in (*draft.mechanism.q, *draft.mechanism.u)
        if state in draft.own_states - draft.cut.flange_states
    }
    return CutMechanismPart(
        draft.name, definition, reference_names, variables.terminal_names(), variables.omitted_outputs
    )
