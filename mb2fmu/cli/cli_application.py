"""The command line: ``mb2fmu run | export | validate | watch | animate | audit | equations | adopt | new | list | …``.

Exit codes: 0 good, 1 the FMU failed, 2 the input is wrong, 3 a tool failed, 70 a fault of mb2fmu itself, 130
interrupted, 143 terminated. Results go to stdout, progress (in a pipe only what it compiled for) and errors to stderr.
"""

from __future__ import annotations

import atexit
import difflib
import gc
import hashlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from mb2fmu.cli.adopt_command import adopt
from mb2fmu.cli.animate_command import animate
from mb2fmu.cli.audit_command import audit
from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    folder_option,
    json_file_option,
    load_model_with_values,
    method_option,
    model_argument,
    print_unit_contradictions,
    print_unless_quiet,
    set_option,
    start_fmu_run_server,
    verbose_option,
    write_json_result,
)
from mb2fmu.cli.equations_command import equations
from mb2fmu.cli.fit_command import fit
from mb2fmu.cli.linearize_command import linearize
from mb2fmu.cli.mcp_command import mcp
from mb2fmu.cli.new_and_list_commands import list_models, new
from mb2fmu.cli.robot_options import add_robot_options, print_robot_notes
from mb2fmu.cli.simulate_command import simulate
from mb2fmu.cli.split_command import split
from mb2fmu.cli.stage_progress_display import StageProgressDisplay, record_command_start_time
from mb2fmu.cli.study_command import study
from mb2fmu.cli.system_command import system
from mb2fmu.cli.termination_signals import get_signal_exit_code, raise_on_termination_signals
from mb2fmu.cli.validate_command import validate
from mb2fmu.cli.verdict_output import default_only_option, print_run_verdict, verdict_json_option
from mb2fmu.cli.watch_command import watch
from mb2fmu.deferred_imports import DeferredPackageFinder
from mb2fmu.errors import Mb2FmuError, ToolError
from mb2fmu.fmu.integration_method_table import SOLVERS
from mb2fmu.targets import SOURCE_TARGETS
from mb2fmu.temporary_files import DISK_FULL_ERRORS, make_disk_fault
from mb2fmu.version import __version__

if TYPE_CHECKING:
    from mb2fmu.pipeline import ExportResult

Command = TypeVar("Command", bound=Callable[..., Any])

INTERNAL_ERROR_EXIT_CODE = 70
HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EXIT_CODE_HELP = """\b
Exit codes:
  0   good
  1   the FMU failed in a bound, or nothing but defaults could be tried
  2   the input is wrong: model file, option, or the given FMU
  3   a tool (compiler, importer, disk) failed
  70  a fault of mb2fmu itself
"""


_WAITING_PACKAGES = ("sympy.physics", "numpy.f2py", "numpy.testing", "scipy.spatial")
"""The units of the first no command uses; SciPy reads all names of NumPy, for whose sake it would import the next two;
the last has rotations, which need neither its trees of points nor its hulls."""

_COMMANDS_BY_SUFFIX = {
    ".fmu": ("simulate", "animate", "audit"),
    **dict.fromkeys((".py", ".urdf", ".xml", ".sdf"), ("run", "simulate", "animate")),
}
"""Kind of file → the first commands for it."""


class _ErrorReportingGroup(click.Group):
    """Turns errors into messages on stderr and exit codes."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; for a file in its place the error names the commands that take it."""
        commands_of = _COMMANDS_BY_SUFFIX.get(Path(args[0]).suffix.lower())
        if commands_of is not None and self.get_command(ctx, args[0]) is None:
            written = ", ".join(f"mb2fmu {each} {args[0]}" for each in commands_of)
            ctx.fail(f"{args[0]} is a file, and a command comes before it: {written}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; see the exit codes above."""
        session = ctx.ensure_object(dict)
        record_command_start_time()
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            near = _choose_closest_options(error.option_name, error.possibilities or ())
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx) from error
        except Mb2FmuError as error:
            if session.get("debug"):
                traceback.print_exception(error, file=sys.stderr)
            click.echo(f"mb2fmu: {error}", err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno not in DISK_FULL_ERRORS:
                raise
            click.echo(f"mb2fmu: {ToolError('there is no room on the disk:', [make_disk_fault(error)])}", err=True)
            ctx.exit(ToolError.exit_code)
        except KeyboardInterrupt as error:
            click.echo(f"mb2fmu: {str(error) or 'interrupted'}", err=True)
            ctx.exit(get_signal_exit_code(error))


def _choose_closest_options(name: str, others: Sequence[str]) -> list[str]:
    """Return of similar options only those that are about as near as the nearest; click offers all of them, by name."""
    near = {other: difflib.SequenceMatcher(None, name.strip("-"), other.strip("-")).ratio() for other in others}
    return [other for other, likeness in near.items() if likeness > max(near.values()) - 0.1]


def _freeze_objects_at_exit() -> None:
    """Leave all objects to the system, which takes back all memory: searching them for cycles takes 5 % of a command.

    Lief's are collected: its extension module reports on standard error what is left of them.
    """
    if "lief" not in sys.modules:
        gc.freeze()


def main(*, is_whole_process: bool) -> None:
    """Runs the command line and ends the process; the argument as of ``mb2fmu.cli.main``."""
    session: dict[str, Any] = {"is_whole_process": is_whole_process}
    # Matrices here have some hundred rows at most: more threads would wait for each other longer than they work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("SYMPY_CACHE_SIZE", "20000")  # 1,000 are less than the expressions of one mechanism
    # SymPy's objects stay, and each look for cycles goes through some 100,000: with 50,000 it is 2 % of a run.
    gc.set_threshold(500_000, 20, 20)
    atexit.register(_freeze_objects_at_exit)
    sys.meta_path[:0] = map(DeferredPackageFinder, _WAITING_PACKAGES)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show θ or → still shows the rest
    raise_on_termination_signals()
    sys.excepthook = _make_internal_error_hook(session)
    commands(prog_name="mb2fmu", obj=session)


def _make_internal_error_hook(
    session: Mapping[str, Any],
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """Return an ``excepthook``: uncaught exceptions are faults of mb2fmu, with an exit code of their own."""

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        """Says the fault on stderr, with the traceback if ``--debug`` was given, and exits with its own code."""
        if session.get("debug"):
            traceback.print_exception(kind, error, where, file=sys.stderr)
        reason = traceback.format_exception_only(kind, error)[-1].strip()
        click.echo(f"mb2fmu: a fault of mb2fmu, not of your model: {reason}", err=True)
        if not session.get("debug"):
            click.echo("    → run it again with --debug to see where, and report it", err=True)
        raise SystemExit(INTERNAL_ERROR_EXIT_CODE)

    return hook


_page_path_type = click.Path(path_type=Path, dir_okay=False)
_constraints_option = click.option(
    "--constraints",
    type=click.Choice(["auto", "attractor", "multipliers", "explicit", "partition"]),
    default="auto",
    show_default=True,
    help="Treatment of closed loops. attractor: states are stabilized on the constraints, on which all outputs are. "
    "multipliers: fewest operations; the loops drift apart by what integration errs. explicit: the states are "
    "independent, dependent coordinates in closed form of them, where the loops have such a form. partition: the same "
    "by Newton's method, as long as the motion stays where the independent ones describe it.",
)
_baumgarte_option = click.option(
    "--baumgarte",
    type=float,
    metavar="RATE",
    help="With --constraints multipliers: draw drifting loops together at this rate in 1/s. Default: none; where "
    "contacts, latches or friction may hold a motion, the rate of attractor.",
)
_independent_option = click.option(
    "--independent",
    default="",
    metavar="NAMES",
    callback=lambda _context, _option, text: tuple(name.strip() for name in text.split(",") if name.strip()),
    help="With --constraints partition or explicit: all coordinates that are to be states, separated by commas.",
)
_backend_option = click.option(
    "--backend",
    type=click.Choice(["native", "python"]),
    default="native",
    show_default=True,
    help="native: compiled, Model Exchange and Co-Simulation, needs nothing on the other machine. python: built with "
    "pythonfmu, Co-Simulation only, the importing tool needs Python with NumPy.",
)
_fmi_option = click.option("--fmi", type=click.Choice(["2", "3"]), default="2", show_default=True, help="FMI version.")
_platforms_option = click.option(
    "--platform",
    "platforms",
    default="host",
    show_default=True,
    metavar="host|all|LIST",
    help="Native: what to compile for. Names separated by commas: x86_64-linux, x86_64-windows, x86_64-darwin, "
    "aarch64-linux, aarch64-windows, aarch64-darwin; with --fmi 3 also wasm32-wasip2, a WebAssembly component (not "
    "among all: its standard is a draft).",
)
_compiler_option = click.option(
    "--compiler",
    type=click.Choice(["zig", "cc"]),
    help="Native: zig (pip install 'mb2fmu[zig]') compiles for every platform; cc is the system's, for this machine. "
    "Default: zig where it is installed.",
)
_fast_option = click.option(
    "--fast",
    is_flag=True,
    help="Native: allow fused multiply-adds. Faster on some processors; each step then differs between platforms by "
    "a few units of round-off (a double pendulum: 1e-12 after 3 s, 1e-4 after 20 s), otherwise by nothing.",
)
_solver_option = click.option(
    "--solver",
    type=click.Choice([row.name for row in SOLVERS]),
    help="Native: how the Co-Simulation integrates unless its parameter says otherwise. Default: as the model's "
    "experiment says.",
)


def _add_fmu_options(command: Command) -> Command:
    """Add the model, the folder, and the options of equations and FMU: :class:`mb2fmu.pipeline.ExportOptions`."""
    equations = (method_option, _constraints_option, _baumgarte_option, _independent_option)
    fmu = (_backend_option, _fmi_option, _platforms_option, _compiler_option, _fast_option, _solver_option)
    given = (model_argument, folder_option, *equations, at_option, set_option, *fmu, add_robot_options)
    return combine_click_options(*given)(command)


@click.group(cls=_ErrorReportingGroup, epilog=EXIT_CODE_HELP, context_settings=HELP_SETTINGS)
@click.version_option(__version__, prog_name="mb2fmu")
def commands() -> None:
    """Turns mechanisms written with SymPy mechanics into FMUs, and validates that they move alike.

    \b
    Start here:
      mb2fmu list                        the models that come with mb2fmu; mb2fmu run cart_pole runs one
      mb2fmu new crane                   writes crane.py, a commented model that works
      mb2fmu adopt script.py             writes script_model.py for a SymPy script of yours
      mb2fmu watch crane.py              a page that follows the file while you write it
      mb2fmu run crane.py                derives, exports, validates, reports
      mb2fmu simulate crane.py --plot crane.svg
      mb2fmu COMMAND --help              says all about a command

    A model file is Python with one function that returns a Model, or a robot description (URDF).

    \b
    Completion of commands and options, in bash (zsh, fish likewise):
      eval "$(_MB2FMU_COMPLETE=bash_source mb2fmu)"
    """


@commands.command(short_help="The whole way: derive, export, validate, report.")
@combine_click_options(_add_fmu_options, default_only_option, verdict_json_option, verbose_option)
@add_quiet_and_debug_options
@click.option("--report", type=_page_path_type, metavar="FILE.html", help="Also write the report here.")
def run(
    model: Path,
    folder: Path,
    method: Any,
    arguments: dict[str, str],
    at: dict[str, str],
    json_file: Path | None,
    report: Path | None,
    **options: Any,
) -> None:
    """Derives, exports, validates and reports a model: the whole way.

    Writes DIR/<ModelName>.fmu (with the report inside) and DIR/<ModelName>.html. Exit code 0 only if the FMU passed,
    with other parameters, start values and inputs than the defaults too.

    \b
    Examples:
      mb2fmu run double_pendulum
      mb2fmu run cart_pole --at m=0.2 --at 'theta=30 deg'
      mb2fmu run n_link_pendulum --set n=4 --method tmt -o out/four
    """
    start_fmu_run_server()
    from mb2fmu import pipeline

    with StageProgressDisplay(options["platforms"]) as progress:
        chosen = load_model_with_values(model, arguments, at)
        result = pipeline.run(chosen, folder, arguments=arguments, method=method, observer=progress, **options)
    if report is not None:
        pipeline.write(report, result.page.read_bytes())
    print_robot_notes(result.exported.build.derivation.checked.mechanics)
    print_run_verdict(result, json_file, report or result.page)


@commands.command(short_help="Write an FMU without running it.")
@combine_click_options(_add_fmu_options, json_file_option, add_quiet_and_debug_options)
@click.option("--modelica", is_flag=True, help="Also write the equations as a flat Modelica model, DIR/<ModelName>.mo.")
@click.option(
    "--target",
    type=click.Choice(["fmu", *SOURCE_TARGETS]),
    default="fmu",
    show_default=True,
    help="What is written: an FMU, or the equations as source code, as mb2fmu equations --format has it.",
)
def export(
    model: Path,
    folder: Path,
    method: Any,
    arguments: dict[str, str],
    at: dict[str, str],
    json_file: Path | None,
    modelica: bool,
    target: str,
    **options: Any,
) -> None:
    """Writes DIR/<ModelName>.fmu without running it, or source code for another program.

    \b
    Examples:
      mb2fmu export cart_pole -o out
      mb2fmu export cart_pole --fmi 3 --platform all
      mb2fmu export cart_pole --platform x86_64-linux,x86_64-windows --solver rk4
      mb2fmu export cart_pole -o out --method lagrange --json
      mb2fmu export cart_pole --target casadi -o cart_pole_casadi
    """
    from mb2fmu import pipeline

    if target != "fmu":
        chosen = load_model_with_values(model, arguments, at)
        _export_source(chosen, folder, target, json_file, arguments=arguments, method=method, **options)
        return
    with StageProgressDisplay(options["platforms"]) as progress:
        chosen = load_model_with_values(model, arguments, at)
        exported = pipeline.export(
            chosen, folder, arguments=arguments, method=method, observer=progress,
            languages=("modelica",) if modelica else (), **options,
        )  # fmt: skip
    derivation = exported.build.derivation
    print_robot_notes(derivation.checked.mechanics)
    print_unit_contradictions(derivation.checked)
    facts = _form_export_facts(exported, options)
    if write_json_result(facts, json_file):
        return
    print_unless_quiet(
        "{model}: {states} states, {variables} variables, {operations} operations by {method}".format(**facts)
    )
    if derivation.why:
        print_unless_quiet(f"Method: {derivation.equations.method}; {derivation.why}")
    if derivation.treated:
        print_unless_quiet(f"Constraints: {derivation.treated}")
    print_unless_quiet(f"FMU: {exported.path}")
    if options["backend"] == "python":
        print_unless_quiet("Host: a Python program with NumPy, or one that loads libpython; see its documentation")
    for path in exported.sources:
        print_unless_quiet(f"Modelica: {path}")


def _form_export_facts(exported: ExportResult, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` writes of an exported FMU; ``options``: how it was built."""
    derivation, interface = exported.build.derivation, exported.build.interface
    return {
        "model": derivation.definition.name,
        "fmu": str(exported.path),
        "sha256": hashlib.sha256(exported.path.read_bytes()).hexdigest(),
        "token": interface.token,
        "fmi": f"{options['fmi']}.0",
        "backend": options["backend"],
        "binaries": {path: len(content) for path, content in exported.build.binaries.files.items()},
        "method": derivation.equations.method,
        "why": derivation.why,
        "constraints": derivation.treated,
        "states": len(derivation.equations.states),
        "variables": len(interface.variables),
        "operations": derivation.operations,
        "seconds": {timing.stage: round(timing.seconds, 3) for timing in exported.timings},
    } | ({"modelica": [str(path) for path in exported.sources]} if exported.sources else {})


_FMU_ONLY_OPTIONS = ("modelica", "backend", "fmi", "platforms", "compiler", "fast", "solver")


def _export_source(model: Any, folder: Path, target: str, json_file: Path | None, **options: Any) -> None:
    """Write the equations as source code; refuse options that only FMUs have."""
    from mb2fmu import pipeline

    context = click.get_current_context()
    given = {p.name: p.opts[0] for p in context.command.params if p.name in _FMU_ONLY_OPTIONS}
    meant = [word for name, word in given.items() if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if meant:
        raise click.UsageError(f"{', '.join(meant)}: only an FMU has this, not --target {target}")
    chosen = {name: value for name, value in options.items() if name not in _FMU_ONLY_OPTIONS}
    with StageProgressDisplay() as progress:
        derivation = pipeline.derive(model, observer=progress, **chosen)
        written = [str(path) for path in pipeline.export_target_source_code(derivation, target, folder)]
    facts = {"model": derivation.definition.name, "target": target, "operations": derivation.operations}
    if write_json_result(facts | {"files": written}, json_file):
        return
    for path in written:
        if Path(path).parent.name != "runtime":
            print_unless_quiet(path)


commands.add_command(adopt)
commands.add_command(watch)
commands.add_command(animate)
commands.add_command(audit)
commands.add_command(equations)
commands.add_command(fit)
commands.add_command(linearize)
commands.add_command(mcp)
commands.add_command(split)
commands.add_command(study)
commands.add_command(system)
commands.add_command(list_models)
commands.add_command(new)
commands.add_command(simulate)
commands.add_command(validate)
