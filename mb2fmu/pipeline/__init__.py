"""The way of the data: the only place that composes stages.

    Path → Model → ModelDefinition → Mechanism → EquationsOfMotion → Program            derive
         → Linearization                                                                linearize
         → FmuInterface → FileTree (sources, description, binaries) → FileTree (core)   build
         → .fmu                                                                         export
         → ValidationResult                                                             validate
         → report → .fmu with its report                                                run

Input: a model, or the file that has its function, and options. Output: frozen records.

Promises: every function returns a frozen record with all intermediates; showing equations or a program is a print. Time
is read (``stopwatch``) for the observer and for the page beside the unit only; it never enters a unit.

Must not: derive, lower, print, judge or draw by itself; the stages do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

import mb2fmu.model
from mb2fmu import evaluation, formulation, mechanism
from mb2fmu.pipeline import choosing, pages, publication
from mb2fmu.pipeline.outcomes import (
    Build,
    BuildOptions,
    CompilableProgram,
    Derivation,
    Exported,
    Finished,
    Observer,
    RightHandSide,
    Simulated,
    Validated,
)
from mb2fmu.pipeline.stopwatch import Stopwatch

if TYPE_CHECKING:
    from mb2fmu.analysis import Linearization
    from mb2fmu.animation import Drawing, Signals
    from mb2fmu.equations.motion import Method
    from mb2fmu.mechanism import Mechanism
    from mb2fmu.model import ModelDefinition
    from mb2fmu.validation import Settings, TableResult

Floats = npt.NDArray[np.float64]
AnyModel = mb2fmu.model.Model | Path | str


class Model(mb2fmu.model.Model):
    """The model that users write; here because ``rhs`` needs all stages down to the program."""

    __doc__ = mb2fmu.model.Model.__doc__

    def _repr_html_(self) -> str:
        """For notebooks."""
        from mb2fmu.pipeline.notebook import model_html

        return model_html(self)

    def rhs(self, method: Method | Literal["auto"] = "auto") -> RightHandSide:
        """The equations of motion as a NumPy callable, without any FMU."""
        return rhs(self, method=method)


def load(path: Path | str, arguments: Mapping[str, Any] | None = None) -> mb2fmu.model.Model:
    """The model that a model file's function returns; ``arguments`` replace the function's defaults."""
    return mb2fmu.model.load(Path(path), arguments or {})


def derive(
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
    constraints: formulation.Constraints = "auto",
    baumgarte: float | None = None,
    independent: Collection[str] = (),
    observer: Observer | None = None,
) -> Derivation:
    """Path or Model → ModelDefinition → Mechanism → EquationsOfMotion → Program.

    Args:
        model: A model, or the file that has its function.
        arguments: Of that function, by name.
        method: Formulation; of ``auto`` and ``recursive`` the one that costs least is taken (see ``choosing``).
        constraints: Treatment of holonomic constraints (see ``formulation.treatment``).
        baumgarte: Of the treatment ``multipliers``: rate in 1/s; None: without.
        independent: Of ``partition`` and ``explicit``: all independent coordinates' names; (): as the mechanics say.
        observer: Is told of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault.
    """
    stage = Stopwatch(observer)
    _, read = _read(model, arguments, stage)
    with stage("formulate"):
        plan = formulation.plan(read, constraints, baumgarte, independent)
        read = formulation.with_rate(read, plan.treatment, baumgarte)
        if method in ("auto", "recursive"):
            tried = choosing.candidates(read, method)
        else:
            tried = (formulation.formulate(read, method),)
        treated = [plan.treated(one) for one in tried]
    with stage("lower"):
        choice = choosing.cheapest(treated)
    why = choice.why if method in ("auto", "recursive") else ""
    program = CompilableProgram.of(choice.program)
    return Derivation(read.definition, read, choice.equations, program, stage.timings, why, plan.because)


def linearize(
    model: AnyModel,
    *,
    at: Mapping[str, float | str] | None = None,
    trim: Collection[str] = (),
    search: bool = True,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
    observer: Observer | None = None,
) -> Linearization:
    """The linear equations about an equilibrium or steady motion near the start values, on the constraints.

    Args:
        model: A model, or the file that has its function.
        at: FMU name → value in its unit, instead of the start value. States named here keep their values in the search.
        trim: Names of inputs that may change in the search.
        search: False: at the very start values, moved onto the constraints where need be.
        arguments: Of the model's function, by name.
        method: Formulation.
        observer: Is told of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``AnalysisError`` if there is no such point.
    """
    from mb2fmu import analysis

    derivation = derive(model, arguments=arguments, method=method, observer=observer)
    start = analysis.start_at(derivation.definition, derivation.equations, at or {}, trim)
    with Stopwatch(observer)("linearize"):
        return analysis.linearize(derivation.equations, derivation.program, start, search=search)


def build(derivation: Derivation, *, observer: Observer | None = None, **options: Unpack[BuildOptions]) -> Build:
    """Program → FmuInterface → sources and description → binaries → core unit, all in memory.

    Args:
        derivation: What to build a unit of.
        observer: Is told of each stage, and of each platform that is compiled for.
        options: See :class:`BuildOptions`.

    Raises:
        InterfaceError: If the backend does not make such units.
        PlatformError: If a platform is not known.
        ToolError: If a compiler, or pythonfmu, fails.
    """
    from mb2fmu.pipeline import building

    return building.build(derivation, observer, options)


def simulate(
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
    stop: float | None = None,
    step: float | None = None,
    observer: Observer | None = None,
) -> Simulated:
    """How a model moves by its own equations, without any unit; ``stop`` and ``step`` instead of its experiment's."""
    from mb2fmu.pipeline import motions

    derivation = derive(model, arguments=arguments, method=method, observer=observer)
    return motions.integrated(derivation, right_hand_side(derivation), stop=stop, step=step)


def animate(
    source: AnyModel,
    *,
    model: AnyModel | None = None,
    arguments: Mapping[str, Any] | None = None,
    observer: Observer | None = None,
) -> tuple[Drawing, Signals]:
    """A mechanism in motion: for ``animation.page`` and ``animation.still``.

    Args:
        source: A model, its file, or a unit (``.fmu``), which is run by fmpy.
        model: Of a unit that does not say what it looks like; its own motion is then the ghost.
        arguments: Of the model file's function.
        observer: Is told of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``PackageError`` if nothing says what it looks like.
    """
    from mb2fmu import package
    from mb2fmu.pipeline import motions

    stage = Stopwatch(observer)
    if isinstance(source, mb2fmu.model.Model) or Path(source).suffix != ".fmu":
        return motions.model_drawn(simulate(source, arguments=arguments, observer=observer))
    path = Path(source)
    with stage("unpack"):
        unit = package.unpack(path)
        if model is None:
            scene, ghost = motions.scene_in(unit, path.name), None
    if model is not None:
        simulated = simulate(model, arguments=arguments, observer=observer)
        scene, ghost = motions.scene_needed(simulated), simulated.motion
    with stage("simulate"):
        return motions.unit_drawn(path, unit, scene, ghost)


def export(
    model: AnyModel,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
    constraints: formulation.Constraints = "auto",
    baumgarte: float | None = None,
    independent: Collection[str] = (),
    observer: Observer | None = None,
    **options: Unpack[BuildOptions],
) -> Exported:
    """Derives, builds and packs: ``folder/<ModelName>.fmu``; arguments as for :func:`derive` and :func:`build`.

    In the unit is a page that describes it; the proof is put there by :func:`run`. A report beside it, of the unit that
    it replaces, is removed.
    """
    from mb2fmu import package

    derivation = derive(
        model, arguments=arguments, method=method, constraints=constraints, baumgarte=baumgarte,
        independent=independent, observer=observer,
    )  # fmt: skip
    built = build(derivation, observer=observer, **options)
    stage = Stopwatch(observer, built.timings)
    with stage("describe the unit"):
        documented = package.with_page(built.core, pages.description(built))
    path, page = _results(derivation.definition, folder)
    with stage("pack"), package.private_folder(path.parent, path.stem) as private:
        package.pack(documented, private / path.name)
        package.publish(private, [path.name], [page.name] if publication.is_report(page) else [])
    return Exported(built, path, stage.timings)


def _results(definition: ModelDefinition, folder: Path | str) -> tuple[Path, Path]:
    """Where a model's unit and its report stand in a folder."""
    return Path(folder) / f"{definition.name}.fmu", Path(folder) / f"{definition.name}.html"


def validate(
    fmu: Path | str | Exported,
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: Observer | None = None,
) -> Validated:
    """Runs any FMU through the model's experiment and judges it by the model's own equations.

    Args:
        fmu: The archive, from whatever tool (its variables are found by name), or what :func:`export` gave.
        model: A model, or the file that has its function.
        arguments: Of that function, by name.
        observer: Is told of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``ToolError`` if the unit fails while it runs.
    """
    stage = Stopwatch(observer)
    definition, read = _read(model, arguments, stage)
    with publication.held_still(fmu.path if isinstance(fmu, Exported) else Path(fmu)) as path:
        return _validate(path, definition, read, None, stage)


def measure(
    fmu: Path | str | Exported,
    *,
    data: Collection[Path | str] = (),
    at: Collection[Path | str] = (),
    settings: Settings | None = None,
) -> tuple[TableResult, ...]:
    """Holds any FMU against the user's own numbers, without a model.

    Args:
        fmu: The archive, or what :func:`export` gave.
        data: Tables of what was measured over time, see ``validation.compare_data``.
        at: Tables of derivatives and outputs at given points, see ``validation.compare_points``.
        settings: Start values, tolerances, steps.

    Raises:
        ValidationError: If a table cannot be read, or does not fit the unit.
        ToolError: If the unit fails while it runs.
    """
    from mb2fmu import validation

    read = [(validation.compare_data, validation.read_table(Path(each))) for each in data]
    read += [(validation.compare_points, validation.read_table(Path(each))) for each in at]
    with publication.held_still(fmu.path if isinstance(fmu, Exported) else Path(fmu)) as path:
        return tuple(result for compare, table in read for result in compare(path, table, settings))


def run(
    model: AnyModel,
    folder: Path | str,
    *,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
    constraints: formulation.Constraints = "auto",
    baumgarte: float | None = None,
    independent: Collection[str] = (),
    observer: Observer | None = None,
    **options: Unpack[BuildOptions],
) -> Finished:
    """The whole way: ``folder/<ModelName>.fmu`` with the report in it, and ``<ModelName>.html`` beside it.

    The report is made from the core unit and packed with it afterwards; the packed one has neither times nor a date in
    it. Both are published together, after the verdict, whatever it is: until then, and if anything fails, the folder
    stays as it was. Arguments as for :func:`derive` and :func:`build`.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``PlatformError`` if the unit would not run here.
    """
    from mb2fmu import package

    publication.refuse_what_cannot_run(options)
    derivation = derive(
        model, arguments=arguments, method=method, constraints=constraints, baumgarte=baumgarte,
        independent=independent, observer=observer,
    )  # fmt: skip
    built = build(derivation, observer=observer, **options)
    stage = Stopwatch(observer, built.timings)
    path, page = _results(derivation.definition, folder)
    with package.private_folder(path.parent, path.stem) as private:
        with stage("pack"):
            package.pack(built.core, private / path.name)
        used = derivation.equations.method
        validated = _validate(private / path.name, derivation.definition, derivation.mechanism, used, stage)
        with stage("report"):
            treatment = (constraints, baumgarte, tuple(independent))
            command = pages.command(derivation.definition, arguments or {}, method, options, treatment)
            inside = pages.inside(built, validated, command)
        with stage("pack"):
            package.pack(pages.proved(built, validated, inside), private / path.name)
        unit = (private / path.name).read_bytes()
        package.write_whole(private / page.name, pages.beside(built, validated, command, stage.timings, unit))
        package.publish(private, [path.name, page.name])
    return Finished(Exported(built, path, stage.timings), validated, page, stage.timings)


def source_code(derivation: Derivation, target: str, folder: Path | str) -> tuple[Path, ...]:
    """Writes the equations as source code of another language; files of the same names are replaced, one by one.

    Args:
        derivation: What to print.
        target: One of ``mb2fmu.emit.SOURCE_TARGETS``.
        folder: Where to; made if it is not there.

    Returns:
        The files, those at the top of the folder first.

    Raises:
        EmitError: If the target cannot express the equations.
        PackageError: If a file cannot be written.
    """
    from mb2fmu import package
    from mb2fmu.pipeline.language_targets import PRINTERS

    return package.write_tree(PRINTERS[target](derivation), Path(folder))


def report(validated: Validated) -> bytes:
    """The page of a unit of which only the verdict is known."""
    source = validated.definition.source
    command = f"mb2fmu validate UNIT.fmu --model {source.name} --report REPORT.html" if source else ""
    return pages.beside(None, validated, command, validated.timings)


def write(path: Path, content: bytes) -> None:
    """Writes a result, whole or not at all.

    Raises:
        PackageError: If the file cannot be written.
    """
    from mb2fmu import package

    package.write_whole(path, content)


def start_values(derivation: Derivation) -> tuple[Floats, Floats, Floats]:
    """Start values x0 of the states (independent q and u, z) and r0 of the inputs, values p0 of the free parameters."""
    definition, equations = derivation.definition, derivation.equations
    q = [definition.coordinates[i].start for i in equations.q_independent]
    u = [definition.speeds[i].start for i in equations.u_independent]
    x0 = [*q, *u, *(state.start for state in definition.auxiliary_states)]
    r0 = [signal.start for signal in definition.inputs]
    return (
        np.array(x0),
        np.array(r0),
        np.array([p.value for p in definition.parameters if not p.calculated], dtype=float),
    )


def rhs(
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    method: Method | Literal["auto"] = "auto",
) -> RightHandSide:
    """The equations of motion of a model as a NumPy callable; arguments as for :func:`derive`."""
    return right_hand_side(derive(model, arguments=arguments, method=method))


def right_hand_side(derivation: Derivation) -> RightHandSide:
    """The same of a derivation that is there already."""
    program = derivation.program
    x0, r0, p0 = start_values(derivation)
    evaluate = evaluation.evaluator(program, "rhs")
    return RightHandSide(
        states=program.layout.states,
        inputs=program.layout.inputs,
        parameters=program.layout.parameters,
        x0=x0,
        r0=r0,
        p0=p0,
        evaluate=evaluate,
        evaluate_outputs=evaluation.evaluator(program, "outputs", memory=evaluate.memory),
        output_names=program.entries["outputs"].labels,
        program=program,
    )


def _read(model: AnyModel, arguments: Mapping[str, Any] | None, stage: Stopwatch) -> tuple[ModelDefinition, Mechanism]:
    with stage("load"):
        loaded = model if isinstance(model, mb2fmu.model.Model) else load(model, arguments)
    with stage("check"):
        definition = mb2fmu.model.check(loaded)
    with stage("read"):
        read = mechanism.close_loops(mechanism.read(definition))
    return read.definition, read


def _validate(
    fmu: Path, definition: ModelDefinition, read: Mechanism, used: Method | None, stage: Stopwatch
) -> Validated:
    """Against another formulation than the one that was ``used``, where there is one."""
    from mb2fmu import validation

    with stage("formulate the reference"):
        numeric = validation.outgrows_symbols(read)
        applying = [method for method, applies in formulation.applicable(read).items() if applies.yes]
        second = validation.reference_method(used, applying) if applying else "auto"
        reference = formulation.formulate_motion(read) if numeric else formulation.formulate(read, second)
    with stage("validate"), mechanism.told_of_jumps(read):
        result = validation.validate(fmu, definition, reference, method=used, mechanism=read if numeric else None)
    with stage("ask the model's own equations"):
        result = replace(result, independence=validation.prove_independently(fmu, definition, read))
    return Validated(definition, read, reference, result, stage.timings)
