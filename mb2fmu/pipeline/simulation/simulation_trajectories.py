"""Variables over time from a simulation, and their export: tables, plots, a page in motion."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from mb2fmu.errors import Fault, ToolError, ValidationError
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.model.quantity_declarations import DeclaredVariable, Output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
    from mb2fmu.visualization import Drawing, PlotSignals, StateTrajectory

Floats = npt.NDArray[np.float64]


_MAX_PRINTED_NAMES = 6
"""Variables that a result names where it is printed."""


@dataclass(frozen=True, slots=True, repr=False)
class AnimationPage:
    """A page in which a mechanism moves; ``save`` it, or show it in a notebook."""

    name: str
    content: bytes

    def __repr__(self) -> str:
        """Return a line: its content, and how to see it."""
        return f"<AnimationPage {self.name}: {len(self.content):,} bytes; save it with .save('{self.name}.html')>"

    def save(self, path: Path | str) -> Path:
        """Write the page, whole or not at all."""
        write_file_atomically(Path(path), self.content)
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)


@dataclass(frozen=True, slots=True)
class RangeViolation:
    """A variable that leaves the range that was declared for it.

    Attributes:
        name: Of the variable.
        unit: Of the numbers.
        bound: The bound that it crosses.
        time: The first time of the result at which it is beyond, s.
        extreme_value: Its value farthest beyond.
    """

    name: str
    unit: str
    bound: float
    time: float
    extreme_value: float

    def __str__(self) -> str:
        """Return a line for the terminal."""
        above = self.extreme_value > self.bound
        side, limit, way = ("above", "largest", "up") if above else ("below", "smallest", "down")
        unit = "" if self.unit == "1" else f" {self.unit}"
        return (
            f"{self.name} is {side} {self.bound:g}{unit}, the {limit} value that is declared for it, "
            f"from t = {self.time:g} s on: {way} to {self.extreme_value:.6g}{unit}"
        )


class SimulationTrajectories(ABC):
    """Common part of simulations of models and of FMUs.

    Attributes:
        name: Of the model.
        signals: Variables, by their FMU names, over ``time``.
        time: In s, shape (n_t,).
    """

    __slots__ = ()
    name: str
    signals: PlotSignals
    time: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.signals.names

    @property
    def units(self) -> dict[str, str]:
        """FMU name → unit."""
        return dict(zip(self.signals.names, self.signals.units, strict=True))

    @property
    def _table(self) -> Floats:
        """All variables, shape (n_t, n)."""
        return self.signals.values

    def __getitem__(self, name: str) -> Floats:
        """Return one variable over time, shape (n_t,).

        Raises:
            KeyError: Naming what there is.
        """
        if name not in self.names:
            raise KeyError(f"{name} is none of {', '.join(self.names)}")
        return np.asarray(self._table[:, self.names.index(name)])

    def __repr__(self) -> str:
        """Return a line: the model, its times and variables."""
        names = ", ".join(self.names[:_MAX_PRINTED_NAMES]) + (
            f" and {len(self.names) - _MAX_PRINTED_NAMES} more" * (len(self.names) > _MAX_PRINTED_NAMES)
        )
        times = f"{len(self.time):,} times from {self.time[0]:g} to {self.time[-1]:g} s"
        return f"<{type(self).__name__} {self.name}: {times}; {names}>"

    def _repr_html_(self) -> str:
        """Return plots of the variables, for notebooks."""
        return notebook_display_registry.render_record_as_html(self)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``: a column per variable, index ``time``; ``attrs["units"]`` has the units.

        Raises:
            ToolError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise _missing_package_error("pandas", "pandas") from error
        frame = pd.DataFrame(self._table, index=pd.Index(self.time, name="time"), columns=list(self.names))
        frame.attrs["units"] = self.units
        return frame

    def to_csv(self, path: Path | str | None = None) -> str:
        """Return a table with a head ``time,theta [rad],…``; it is also written to ``path`` if given.

        Numbers read back to the same bits. ``mb2fmu validate --data`` reads it.
        """
        head = io.StringIO()
        heads = (f"{name} [{unit}]" if unit != "1" else name for name, unit in self.units.items())
        csv.writer(head, lineterminator="\n").writerow(["time", *heads])
        content = head.getvalue().encode() + _format_csv_rows(np.column_stack([self.time, self._table]))
        if path is not None:
            write_file_atomically(Path(path), content)
        return content.decode()

    def to_parquet(self, path: Path | str) -> None:
        """Write a Parquet file: columns as of :meth:`to_pandas`, each with its unit in its metadata.

        Raises:
            ToolError: If pyarrow is not installed.
        """
        write_file_atomically(Path(path), format_parquet(self.time, self.units, self._table))

    def plot(self, *names: str, save: Path | str | None = None) -> Figure:
        """Plot variables over time, one panel per unit.

        Args:
            names: FMU names; none: those that :meth:`choose_plot_names` gives.
            save: Also write it there, as the suffix says: .svg, .png, .pdf.

        Raises:
            ValidationError: For every name that is none; if there is no such form.
            ToolError: If matplotlib is not installed.
        """
        from mb2fmu.report.figures.figure_style import choose_figure_format, draw_variable_panels, render_figure

        form = "svg" if save is None else choose_figure_format(Path(save))
        wanted = names or self.choose_plot_names()
        self.check(wanted)
        chosen = [(name, self.units[name], self[name]) for name in wanted]
        figure = draw_variable_panels(self.name, self.time, chosen)
        if save is not None:
            write_file_atomically(Path(save), render_figure(figure, form))
        return figure

    @property
    @abstractmethod
    def ranges(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Variable → smallest and largest value that are declared for it; None: there is none."""

    def range_violations(self) -> Iterator[RangeViolation]:
        """Yield where variables leave the ranges that are declared for them, by more than a millionth of their own."""
        for name, bounds in self.ranges.items():
            if name not in self.names:
                continue
            values = self[name]
            margin = 1e-6 * float(np.ptp(values))
            for sign, bound in zip((-1.0, 1.0), bounds, strict=True):
                if bound is None:
                    continue
                beyond = sign * (values - bound)
                if np.any(far := beyond > margin):
                    row = int(np.argmax(beyond))
                    time = float(self.time[int(np.argmax(far))])
                    yield RangeViolation(name, self.units[name], bound, time, float(values[row]))

    def choose_plot_names(self, most: int = 4) -> tuple[str, ...]:
        """Return the variables that deserve a first look: moving ones, outputs before states, at most two of a unit."""
        from mb2fmu.visualization.default_plots import choose_default_plots

        return choose_default_plots(self.signals, most)

    def check(self, names: Sequence[str]) -> None:
        """Refuse unknown names.

        Raises:
            ValidationError: With every fault.
        """
        faults = [
            Fault(f"there is no variable {name}", remedy=f"there are {', '.join(self.names)}")
            for name in names
            if name not in self.names
        ]
        if faults:
            raise ValidationError("this cannot be shown:", faults)

    @abstractmethod
    def drawing(self) -> Drawing:
        """Return the mechanism in motion, for ``animation``.

        Raises:
            Mb2FmuError: If nothing says what it looks like.
        """

    def animate(self, *shown: str) -> AnimationPage:
        """Return a page in which it moves, with the variables ``shown`` in its plot.

        Raises:
            Mb2FmuError: If nothing says what it looks like.
        """
        from mb2fmu import visualization

        self.check(shown)
        return AnimationPage(
            self.name,
            visualization.render_animation_page(self.drawing(), self.signals, shown=shown or self.choose_plot_names()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSimulation(SimulationTrajectories):
    """Motion of a model by its own equations, without any FMU.

    Attributes:
        derivation: Model, mechanism, equations, program.
        motion: States and inputs over time.
        signals: States, outputs and inputs, by their FMU names.
    """

    derivation: DerivationResult
    motion: StateTrajectory
    signals: PlotSignals

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the model."""
        return self.derivation.definition.name

    @property
    def time(self) -> Floats:  # type: ignore[override]
        """Times in s, shape (n_t,)."""
        return self.motion.time

    @property
    def ranges(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Ranges of the model's variables."""
        d = self.derivation.definition
        outputs = (each for each in self.derivation.checked.outputs if isinstance(each, Output))
        items: tuple[DeclaredVariable, ...] = (*d.coordinates, *d.speeds, *d.auxiliary_states, *d.inputs, *outputs)
        return {each.name: (each.minimum, each.maximum) for each in items}

    def drawing(self) -> Drawing:
        """Return the mechanism in motion."""
        from mb2fmu import visualization
        from mb2fmu.pipeline.display.fmu_motion_drawings import get_model_scene

        return visualization.draw_motion(get_model_scene(self.derivation), self.motion)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FmuSimulation(SimulationTrajectories):
    """Motion of an FMU that fmpy has run.

    Attributes:
        name: Of its model.
        path: The archive; of a model with events one that was made for the run and is no longer there.
        files: What is in it.
        kind: ``CoSimulation`` or ``ModelExchange``.
        time: Communication points in s, shape (n_t,).
        signals: Its outputs and other variables that change, by name.
        inputs: What it was given, shape (n_t, n_r); row k holds up to ``time[k + 1]``.
        input_names: One per column.
        parameters: FMU name → value that was set.
        ranges: Variable → ``min`` and ``max`` as the FMU declares them.
    """

    name: str
    path: Path
    files: InMemoryFileTree
    kind: str
    time: Floats
    signals: PlotSignals
    inputs: Floats
    input_names: tuple[str, ...]
    parameters: dict[str, float]
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)

    def drawing(self) -> Drawing:
        """Return the mechanism in motion, as the scene in the FMU shows it.

        Raises:
            PackageError: If the FMU does not say what it looks like.
        """
        from mb2fmu import visualization
        from mb2fmu.pipeline.display.fmu_motion_drawings import read_scene_of_fmu

        scene = read_scene_of_fmu(self.files, self.path.name)
        given = dict(zip(self.input_names, self.inputs.T, strict=True))
        n = len(self.time)

        def column(name: str, start: float) -> Floats:
            """Return a variable over time: simulated, given, or constant at its value."""
            if name in self.names:
                return self[name]
            return np.asarray(given.get(name, np.full(n, self.parameters.get(name, start))))

        states = np.array([column(v.name, v.start) for v in scene.states]).reshape(len(scene.states), n).T
        inputs = np.array([column(v.name, v.start) for v in scene.inputs]).reshape(len(scene.inputs), n).T
        parameters = np.array([self.parameters.get(v.name, v.start) for v in scene.parameters])
        return visualization.draw_motion(scene, visualization.StateTrajectory(self.time, states, inputs, parameters))


class SimulationStoppedError(ToolError):
    """An FMU failed, or returned a value that is no number, after its first communication steps.

    Attributes:
        simulation: The trajectories up to there.
    """

    def __init__(self, reason: str, simulation: FmuSimulation) -> None:
        reached = f"the trajectories up to t = {simulation.time[-1]:.9g} s are kept"
        super().__init__("the FMU did not run to the end:", [Fault(reason, simulation.path.name, reached)])
        self.simulation = simulation


def require_parquet_support() -> None:
    """Raise, before anything runs, if no Parquet file can be written.

    Raises:
        ToolError: If pyarrow is not installed.
    """
    format_parquet(np.zeros(0), {}, np.zeros((0, 0)))


def format_parquet(time: Floats, units: Mapping[str, str], table: Floats) -> bytes:
    """Return a table over time as a Parquet file, each column with its unit in its metadata.

    Args:
        time: In s, shape (n_t,).
        units: Name → unit of each column, in order.
        table: Shape (n_t, n).

    Raises:
        ToolError: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise _missing_package_error("pyarrow", "parquet") from error
    fields = [pa.field("time", pa.float64(), metadata={"unit": "s"})]
    fields += [pa.field(name, pa.float64(), metadata={"unit": unit}) for name, unit in units.items()]
    sink = io.BytesIO()
    pq.write_table(pa.table([time, *np.ascontiguousarray(table.T)], schema=pa.schema(fields)), sink)
    return sink.getvalue()


def _format_csv_rows(table: Floats) -> bytes:
    """Return lines of numbers that read back to the same bits, in a tenth of the time that ``repr`` takes."""
    if not np.isfinite(table).all():  # JSON has no such numbers
        return "".join(",".join(map(repr, row)) + "\n" for row in table.tolist()).encode()
    rows = orjson.dumps(np.ascontiguousarray(table), option=orjson.OPT_SERIALIZE_NUMPY)
    return rows.removeprefix(b"[[").removesuffix(b"]]").replace(b"],[", b"\n") + b"\n"


def _missing_package_error(package: str, extra: str) -> ToolError:
    """Return the error that names an extra which a table's format needs, and how to install it."""
    fault = Fault(f"{package} is not installed", remedy=f"pip install 'mb2fmu[{extra}]', or pip install {package}")
    return ToolError("this table cannot be made:", [fault])
