"""``%%mb2fmu``: a notebook's cell with a model is validated, and shows its motion and the verdict."""

from __future__ import annotations

import argparse
import ast
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mb2fmu.errors import Fault, Mb2FmuError, ModelError
from mb2fmu.model.model import Model

if TYPE_CHECKING:
    from mb2fmu.pipeline.derivation.pipeline_results import RunResult
    from mb2fmu.pipeline.simulation.simulation_trajectories import SimulationTrajectories


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic ``%%mb2fmu`` to a notebook; ``%load_ext mb2fmu`` calls this.

    Args:
        shell: IPython's.
    """

    def mb2fmu(line: str, cell: str) -> RunResult | SimulationTrajectories:
        """%%mb2fmu [-o DIR] [--fmi 2|3] [--no-validate]: validate the model of this cell, and show it."""
        return _run_cell_model(shell, line, cell)

    shell.register_magic_function(mb2fmu, "cell")


def _run_cell_model(shell: Any, line: str, cell: str) -> RunResult | SimulationTrajectories:
    """Run a cell, and validate the model that it makes.

    Args:
        shell: IPython's; the cell's variables stay in it.
        line: Options behind ``%%mb2fmu``.
        cell: The text.

    Returns:
        What the notebook shows.

    Raises:
        Mb2FmuError: If the cell makes no model, or it is refused; shown as its message.
    """
    from mb2fmu import pipeline

    try:
        options = _read_options(line)
        model = _run_cell(shell, cell)
        if options.no_validate:
            return pipeline.simulate(model)
        return pipeline.run(model, options.output, fmi=options.fmi)
    except Mb2FmuError as error:
        lines = [str(error)]
        vars(error)["_render_traceback_"] = lambda: lines  # how IPython shows it: the message says all
        raise


class _NotebookMagicOptionParser(argparse.ArgumentParser):
    """Raises instead of ending the process."""

    def error(self, message: str) -> Any:
        """Refuse the options."""
        raise ModelError("the cell was not run:", [Fault(message, "%%mb2fmu", self.format_usage().strip())])


def _read_options(line: str) -> argparse.Namespace:
    """Return the options of a cell."""
    parser = _NotebookMagicOptionParser("%%mb2fmu", add_help=False)
    parser.add_argument("-o", "--output", type=Path, default=Path("out"))
    parser.add_argument("--fmi", choices=["2", "3"], default="2")
    parser.add_argument("--no-validate", action="store_true")
    return parser.parse_args(shlex.split(line))


def _run_cell(shell: Any, cell: str) -> Model:
    """Run a cell; return what its last function for one makes, else its last line, else its last variable."""
    text = shell.transform_cell(cell)
    name = shell.compile.cache(text, shell.execution_count, raw_code=cell)  # so that tracebacks show its lines
    tree = shell.compile.ast_parse(text, filename=name)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _returns_model(node)]
    names = [
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    ]
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_ns)  # noqa: S102 - the user's cell
    result = eval(compile(last, name, "eval"), shell.user_ns) if last else None  # noqa: S307
    if functions:
        result = shell.user_ns[functions[-1]]()
    models = [each for each in (*map(shell.user_ns.get, names), result) if isinstance(each, Model)]
    if models:
        return models[-1]
    remedy = "write  def build() -> Model: …  in it, or let its last line be the model"
    raise ModelError("the cell makes no model:", [Fault("no function of it returns one", "%%mb2fmu", remedy)])


def _returns_model(node: ast.FunctionDef) -> bool:
    """Return whether a function is annotated to return a Model."""
    return node.returns is not None and ast.unparse(node.returns).strip("'\"").rpartition(".")[2] == "Model"
