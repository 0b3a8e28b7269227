"""All four links as one model: the truth."""

import sympy.physics.mechanics as me
from links import Links

from mb2fmu import Model


def whole() -> Model:
    """Four links from the ceiling."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    links = Links(range(4), N, O, O)
    model = Model("FourLinks", links.kane([]))
    links.declare(model)
    return model
