"""``Runs``: results of many motions of one model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Runs:
    """Results of many runs.

    Attributes:
        time: Communication points in s, shape (n_t,).
        states: At each of them, shape (n, n_t, n_x); at the last one only, (n, n_x), unless all were asked for.
        outputs: Likewise, (n, n_t, n_y) or (n, n_y).
        state_names: FMU names of the states.
        output_names: FMU names of the outputs.
        reduced: By the names that were given: one number per instance.
        messages: Of each instance: why it ended early, empty where it did not. Its numbers are NaN from there on.
        to: By what was differentiated: FMU names of parameters, and of states for their start values.
        state_derivatives: ∂x/∂to where the states are, with one more axis: shape (n, n_t, n_x, n_to) or (n, n_x, n_to).
        output_derivatives: ∂y/∂to likewise.
        reduced_derivatives: By the names that were given: of what was reduced, shape (n, n_to).
        no_derivatives: Of each instance: why its derivatives are NaN (an event that is only touched, two events at one
            instant), empty where they are there.
    """

    time: Floats
    states: Floats
    outputs: Floats
    state_names: tuple[str, ...]
    output_names: tuple[str, ...]
    reduced: dict[str, Floats]
    messages: tuple[str, ...]
    to: tuple[str, ...]
    state_derivatives: Floats
    output_derivatives: Floats
    reduced_derivatives: dict[str, Floats]
    no_derivatives: tuple[str, ...]

    def __getitem__(self, name: str | tuple[str, str]) -> Floats:
        """Return a state or output by its name: shape (n, n_t), or (n,) at the end; or its reduction.

        ``runs["tip.x", "m2"]`` is the derivative of the first by the second, of the same shape.
        """
        if isinstance(name, tuple):
            return self._derivative(*name)
        if name in self.reduced:
            return self.reduced[name]
        if name in self.state_names:
            return np.asarray(self.states[..., self.state_names.index(name)])
        if name in self.output_names:
            return np.asarray(self.outputs[..., self.output_names.index(name)])
        raise KeyError(f"{name!r} is not among {', '.join((*self.reduced, *self.state_names, *self.output_names))}")

    def _derivative(self, of: str, to: str) -> Floats:
        """Return the derivative of one by another."""
        if to not in self.to:
            raise KeyError(f"nothing was differentiated by {to!r}, but by {', '.join(self.to) or 'nothing'}")
        k = self.to.index(to)
        if of in self.reduced_derivatives:
            return np.asarray(self.reduced_derivatives[of][:, k])
        if of in self.state_names:
            return np.asarray(self.state_derivatives[..., self.state_names.index(of), k])
        if of in self.output_names:
            return np.asarray(self.output_derivatives[..., self.output_names.index(of), k])
        raise KeyError(f"{of!r} is not among {', '.join((*self.reduced, *self.state_names, *self.output_names))}")
