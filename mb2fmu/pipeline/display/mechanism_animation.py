"""Put a mechanism into motion for a picture: by its own program, or by an FMU that fmpy runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.model import Model
from mb2fmu.model.value_overrides import OverrideValue
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, load
from mb2fmu.pipeline.derivation.pipeline_results import StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.display.fmu_motion_drawings import draw_fmu_motion, get_model_scene, read_scene_of_fmu
from mb2fmu.pipeline.simulation.fmu_simulation import simulate_fmu_file
from mb2fmu.pipeline.simulation.input_signals import InputValue
from mb2fmu.pipeline.simulation.model_simulation import simulate_model
from mb2fmu.pipeline.simulation.simulation_trajectories import AnimationPage, FmuSimulation, ModelSimulation

if TYPE_CHECKING:
    from mb2fmu.visualization import Drawing, PlotSignals

Floats = npt.NDArray[np.float64]


class MechanismAnimation(NamedTuple):
    """A mechanism in motion.

    Attributes:
        drawing: What moves, and how.
        signals: Variables over time, for the plots beside it.
    """

    drawing: Drawing
    signals: PlotSignals

    def __repr__(self) -> str:
        time = self.drawing.poses.time
        return f"<Animation of {self.drawing.name}: {time[0]:g} to {time[-1]:g} s>"

    def page(self, *shown: str) -> AnimationPage:
        """Return it as a page, with the variables ``shown`` in its plot; the first three if none is named."""
        from mb2fmu import visualization

        names = shown or tuple(self.signals.names[:3])
        return AnimationPage(self.drawing.name, visualization.render_animation_page(*self, shown=names))

    def save(self, path: Path | str, *shown: str) -> Path:
        """Write the page, whole or not at all."""
        return self.page(*shown).save(path)

    def _repr_html_(self) -> str:
        """Return the page, for notebooks."""
        return notebook_display_registry.render_record_as_html(self.page())


def animate(
    source: AnyModel,
    *,
    model: AnyModel | None = None,
    arguments: Mapping[str, Any] | None = None,
    at: Mapping[str, OverrideValue] | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    tables: tuple[Path, ...] = (),
    stop: float | None = None,
    step: float | None = None,
    observer: StageObserver | None = None,
) -> MechanismAnimation:
    """Return a mechanism in motion: ``.save("swing.html")`` writes a page that opens without a network.

    Args:
        source: A model, its file, or an FMU (``.fmu``), which is run by fmpy.
        model: Of an FMU that does not say what it looks like; its own motion is then the reference.
        arguments: Of the model file's function.
        at: FMU name of a parameter, start value or input → value; this and what follows as for ``simulate``. An FMU
            that is run with values of its own has no reference: its own one is of another motion.
        inputs: FMU name → formula of ``t``, number, or function of time.
        tables: CSV files with inputs.
        stop: In s, instead of the experiment's.
        step: In s, instead of the experiment's.
        observer: Is notified of each stage.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``PackageError`` if nothing says what it looks like.

    Example:
        >>> import mb2fmu
        >>> mb2fmu.animate("double_pendulum", stop=0.5).page().name
        'DoublePendulum'
    """
    from mb2fmu.fmu import package

    stage = StageStopwatch(observer)
    if isinstance(source, Model) or Path(source).suffix != ".fmu":
        chosen = (source if isinstance(source, Model) else load(source, arguments)).at(at)
        return _draw_simulated_motion(
            simulate_model(chosen, inputs=inputs, tables=tables, stop=stop, step=step, observer=observer)
        )
    path = Path(source)
    if at or inputs or tables or stop is not None or step is not None:
        _refuse_reference_with_settings(model)
        with stage("simulate"):
            return _draw_simulated_motion(
                simulate_fmu_file(path, at=at, inputs=inputs, tables=tables, stop=stop, step=step)
            )
    with stage("unpack"):
        archive = package.read_archive(path)
        if model is None:
            scene, overlay = read_scene_of_fmu(archive, path.name), None
    if model is not None:
        simulated = simulate_model(model, arguments=arguments, observer=observer)
        if isinstance(simulated, FmuSimulation):
            fault = Fault("the model has events", remedy="leave out --model, or animate the model itself")
            raise ValidationError("this model cannot be the reference of an FMU:", [fault])
        scene, overlay = get_model_scene(simulated.derivation), simulated.motion
    with stage("simulate"):
        return MechanismAnimation(*draw_fmu_motion(path, archive, scene, overlay))


def _refuse_reference_with_settings(model: AnyModel | None) -> None:
    """Refuse a model as reference together with settings: it moves through its own experiment.

    Raises:
        ValidationError: If there is one.
    """
    if model is not None:
        fault = Fault("a model beside an FMU moves through its own experiment", "--model", "animate one of them alone")
        raise ValidationError("other values, inputs and times cannot be shown beside a model:", [fault])


def _draw_simulated_motion(simulated: ModelSimulation | FmuSimulation) -> MechanismAnimation:
    """Return a model as its own equations move it, or as its FMU does."""
    return MechanismAnimation(simulated.drawing(), simulated.signals)
