"""Every constrained mechanism by every treatment of its constraints, as every kind of FMU, against its reference.

Each FMU goes through the validation of ``mb2fmu run``: native ones as Co-Simulation and as Model Exchange. What was
found is kept in a file, a line per FMU, so that a run that was stopped goes on where it was. At the end a table is
written: for each model and treatment the largest error over its bound among all FMUs and kinds, below 1 if all passed.
Exit code 1 if an FMU failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mb2fmu import pipeline, validation
from mb2fmu.errors import FormulationError, ToolError
from mb2fmu.fmu import package
from mb2fmu.mechanics.equations import Method
from mb2fmu.model import Model
from mb2fmu.pipeline.derivation.formulation_and_build_options import BuildOptions
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # mechanisms that are no examples, but hard

TREATMENTS: Mapping[str, Mapping[str, Any]] = {
    "attractor": {"constraints": "attractor"},
    "explicit": {"constraints": "explicit"},
    "partition": {"constraints": "partition"},
    "multipliers": {"constraints": "multipliers"},
    "Baumgarte": {"constraints": "multipliers", "baumgarte": 20.0},
}
FMUS: Mapping[str, BuildOptions] = {
    "native FMI 2.0": {"backend": "native", "fmi": "2"},
    "native FMI 3.0": {"backend": "native", "fmi": "3"},
    "Python": {"backend": "python"},
}
PASSED, REFUSED, LEFT = "passed", "refused", "left"
OUT_OF_CHART = ("the motion leaves what the independent ones", "the loop cannot be closed")
"""What an FMU says where its independent coordinates cannot describe the motion any longer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism.

    Attributes:
        make: Gives its model.
        independent: Others than the mechanics' own independent coordinates; () where there is no choice to speak of.
        loops: False: rolling and sliding only, there is nothing to choose.
    """

    make: Callable[[], Model]
    independent: tuple[str, ...] = ()
    loops: bool = True


def _file(name: str, **arguments: Any) -> Callable[[], Model]:
    return lambda: pipeline.load(ROOT / "models" / f"{name}.py", arguments)


def _bennett() -> Model:
    hinges = importlib.import_module("hinges")
    made: Model = hinges.linkage(*hinges.BENNETT)
    return made


def _ball_joint() -> Model:
    made: Model = importlib.import_module("ball_joints").linkage()
    return made


CASES: Mapping[str, Case] = {
    "four_bar": Case(_file("four_bar"), ("q3",)),
    "msl_planar_four_bar": Case(_file("msl_planar_four_bar"), ("phi3",)),
    "crank_slider": Case(_file("crank_slider"), ("coupler",)),
    "crank_slider, massless coupler": Case(_file("crank_slider", coupler_mass=False)),
    "n_four_bar": Case(_file("n_four_bar"), ("crank[1]",)),
    "transmission": Case(_file("transmission"), ("arm",)),
    "governor, rigid": Case(_file("governor", rigid=True), ("spin", "tilt1")),
    "andrews": Case(_file("andrews"), ("Theta",)),
    "excavator_arm": Case(_file("excavator_arm"), ("length1", "length2", "rocker")),
    "bowl": Case(_file("bowl"), ("x", "z")),
    "bicycle": Case(_file("bicycle")),
    "Bennett's linkage": Case(_bennett),
    "ball joint of a quaternion": Case(_ball_joint),
    "rolling_disc": Case(_file("rolling_disc"), loops=False),
    "rolling_sphere": Case(_file("rolling_sphere"), loops=False),
    "snakeboard": Case(_file("snakeboard"), loops=False),
    "chaplygin_sleigh": Case(_file("chaplygin_sleigh"), loops=False),
    "turntable_ball": Case(_file("turntable_ball"), loops=False),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one FMU.

    Attributes:
        outcome: ``passed``, ``refused`` (by the treatment, with a reason), ``left`` (the motion left what its
            independent coordinates describe, and the FMU said so), or what is wrong.
        ratio: Largest error over its bound.
        worst: Of what, and how it was run.
        seconds: To build and validate it.
    """

    case: str
    treatment: str
    fmu: str
    outcome: str
    ratio: float = 0.0
    worst: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Passed, or not with a reason."""
        return self.outcome.startswith((PASSED, REFUSED, LEFT))


@dataclass(slots=True)
class Store:
    """What was found so far, kept on disk as it comes."""

    path: Path
    found: dict[tuple[str, str, str], Found] = field(default_factory=dict)

    def load(self, again: str) -> None:
        """Reads it, but for what is to be done again."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() and again != "all" else []
        for line in lines:
            one = Found(**json.loads(line))
            if one.good or again != "failed":
                self.found[one.case, one.treatment, one.fmu] = one
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in self.found.values()), encoding="utf-8")

    def add(self, one: Found) -> None:
        """Keeps and shows it."""
        self.found[one.case, one.treatment, one.fmu] = one
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(one)) + "\n")
        worst_ratio = f"{one.ratio:.2g} of its bound ({one.worst})" if one.worst else ""
        print(f"{one.case} | {one.treatment} | {one.fmu}: {one.outcome} {worst_ratio} {one.seconds:.0f} s", flush=True)


def treatments(case: Case) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and arguments of :func:`pipeline.derive` of all that are to be tried."""
    if not case.loops:
        yield "auto", {}
        return
    yield from TREATMENTS.items()
    if case.independent:
        for name in ("explicit", "partition"):
            yield f"{name} by {', '.join(case.independent)}", {"constraints": name, "independent": case.independent}


@cache
def yardstick(case: str, used: Method) -> validation.ReferenceAndBounds:
    """By the formulation that the reference of FMUs of such equations has, one for all FMUs of a mechanism."""
    derivation = _derived(case, "attractor" if CASES[case].loops else "auto")
    source = choose_reference_equations(derivation.mechanism, used)
    return validation.make_reference_and_bounds(derivation.definition, source.equations, mechanism=source.mechanism)


@cache
def _derived(case: str, treatment: str) -> DerivationResult:
    return pipeline.derive(CASES[case].make(), **dict(treatments(CASES[case]))[treatment])


def validate_case(case: str, treatment: str, fmu: str) -> Found:
    """Builds and validates one FMU."""
    begun = time.perf_counter()
    try:
        derivation = _derived(case, treatment)
    except FormulationError as refusal:
        reason = " ".join(str(refusal).split())
        return Found(case, treatment, fmu, f"{REFUSED}: {reason}")
    used = derivation.equations.method
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fmu"
        package.write_fmu_archive(pipeline.build(derivation, **FMUS[fmu]).core, path)
        measured = yardstick(case, used)
        equations = measured.reference.numeric.equations
        result = validation.validate(path, derivation.definition, equations, method=used, reference_and_bounds=measured)
    runs: tuple[validation.ValidationResult | validation.InterfaceTypeResult, ...] = (
        result,
        *result.other_interface_types,
    )
    kinds: list[tuple[str, validation.VariableResult | validation.InvariantResult]] = []
    for run in runs:
        kinds += [(run.simulation.kind, variable) for variable in run.variables]
        kinds += [(run.simulation.kind, invariant) for invariant in run.invariants]
    kind, worst = max(kinds, key=lambda pair: pair[1].ratio)
    short = [f"{k} {i.name} {i.verdict} ({i.ratio:.3g})" for k, i in kinds if i.verdict != "passed"]
    short += [f"{f.checker}: {f.message}" for f in result.conformance if f.severity == "error"]
    outcome = PASSED if result.passed else f"failed: {'; '.join(short[:3])}, {len(short)} in all"
    return Found(case, treatment, fmu, outcome, worst.ratio, f"{worst.name}, {kind}", time.perf_counter() - begun)


def table(found: Sequence[Found]) -> str:
    """In Markdown: mechanisms by treatments, and below why some are refused."""
    columns = [*TREATMENTS, "explicit, others", "partition, others"]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    reasons: dict[str, int] = {}
    for case in dict.fromkeys(one.case for one in found):
        cells = []
        for column in columns:
            of_cell = [one for one in found if one.case == case and _column(one.treatment, column)]
            cells.append(_cell(of_cell, reasons))
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for reason, number in reasons.items())])


def _column(treatment: str, column: str) -> bool:
    name, _, chosen = treatment.partition(" by ")
    if column.endswith(", others"):
        return bool(chosen) and name == column.removesuffix(", others")
    return not chosen and (name == column or (name == "auto" and column == "attractor"))


def _cell(found: Sequence[Found], reasons: dict[str, int]) -> str:
    if not found:
        return ""
    refused = [one.outcome for one in found if one.outcome.startswith((REFUSED, LEFT))]
    if len(refused) == len(found):
        return f"– ({reasons.setdefault(refused[0], len(reasons) + 1)})"
    short = [one.fmu for one in found if not one.good]
    worst = f"{max(one.ratio for one in found):.2g}"
    return f"**{worst}** {', '.join(short)}" if short else worst


def main() -> int:
    """Exit code 0, or 1 if something failed."""
    parser = argparse.ArgumentParser(prog="validate_constraints", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; all of them if none")
    parser.add_argument("--treatments", nargs="*", help=f"of {', '.join(TREATMENTS)}; all of them if none")
    parser.add_argument("--fmus", nargs="*", choices=FMUS, default=tuple(FMUS), help="all of them if none")
    parser.add_argument("--again", choices=("no", "failed", "all"), default="no", help="what is not taken as found")
    parser.add_argument("--store", type=Path, default=ROOT / "out" / "constraints.jsonl", help="(%(default)s)")
    parser.add_argument("--table", type=Path, help="also write the table there")
    given = parser.parse_args()
    store = Store(given.store)
    store.load(given.again)
    for name in given.names or CASES:
        for treatment, _ in treatments(CASES[name]):
            for fmu in given.fmus:
                wanted = not given.treatments or treatment.partition(" by ")[0] in (*given.treatments, "auto")
                if wanted and (name, treatment, fmu) not in store.found:
                    store.add(_found(name, treatment, fmu))
        _derived.cache_clear()
        yardstick.cache_clear()
    found = [one for case in CASES for one in store.found.values() if one.case == case]
    print(table(found))
    if given.table:
        given.table.write_text(table(found) + "\n", encoding="utf-8")
    return 0 if all(one.good for one in found) else 1


def _found(name: str, treatment: str, fmu: str) -> Found:
    """Whatever goes wrong with one FMU is reported of it, and the others go on."""
    try:
        return validate_case(name, treatment, fmu)
    except ToolError as error:
        said = " ".join(str(error).split())
        left = [f"{LEFT}: {words}" for words in OUT_OF_CHART if words in said]
        return Found(name, treatment, fmu, left[0] if left else f"ToolError: {said}")
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        return Found(name, treatment, fmu, f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    sys.exit(main())
