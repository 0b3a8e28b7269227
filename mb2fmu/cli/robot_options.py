"""Options of commands that take a robot description: settings by name, merged with those of ``--set``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_role_option = click.option(
    "--as",
    "role",
    type=click.Choice(["plant", "inverse-dynamics"]),
    help="Robots: what the FMU is. plant: efforts move it (the default); inverse-dynamics: motions go in, efforts "
    "come out.",
)
_limits_option = click.option(
    "--limits",
    type=click.Choice(["stop", "ignore"]),
    help="Robots: treatment of joint ranges. ignore (the default): bounds of variables; stop: hard stops.",
)
_friction_option = click.option(
    "--friction",
    type=click.Choice(["stick", "ignore"]),
    help="Robots: treatment of dry friction of joints. stick: it slides and sticks; ignore (the default): left out.",
)
_inertia_option = click.option(
    "--inertia",
    type=click.Choice(["refuse", "repair", "keep"]),
    help="Robots: treatment of inertias that no body can have. repair: the nearest possible ones; keep: taken as "
    "they are; each is reported.",
)
_quantities_option = click.option(
    "--with",
    "quantities",
    multiple=True,
    metavar="WHAT",
    help="Robots: the equations as outputs: inverse-dynamics, mass-matrix, gravity-torques, jacobian:LINK. May be "
    "repeated, or separated by commas.",
)
_arrays_option = click.option(
    "--arrays",
    is_flag=True,
    help="Robots: FMUs of FMI 3 have positions, speeds, accelerations, efforts, poses and equations as arrays.",
)
_packages_option = click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME=DIR",
    help="Robots: folder of a package that package:// or model:// stands for. May be repeated.",
)


def add_robot_options(command: Command) -> Command:
    """Add the options to a command that takes ``arguments``; it receives them as settings of the robot."""

    @functools.wraps(command)
    def merged(
        *given: Any, packages: tuple[str, ...], quantities: tuple[str, ...], arrays: bool, **options: Any
    ) -> Any:
        """Call the command with the robot's options merged into settings."""
        settings: dict[str, Any] = {name: options.pop(name) for name in ("role", "limits", "friction", "inertia")}
        settings |= {"packages": ",".join(packages), "quantities": ",".join(quantities)}
        settings |= {"arrays": "true" if arrays else ""}
        options["arguments"] = {**options["arguments"], **{key: value for key, value in settings.items() if value}}
        return command(*given, **options)

    return cast(
        "Command",
        _role_option(
            _quantities_option(
                _arrays_option(_limits_option(_friction_option(_inertia_option(_packages_option(merged)))))
            )
        ),
    )


def print_robot_notes(mechanics: Any) -> None:
    """Print on stderr what was left out or assumed while reading a robot."""
    for note in getattr(mechanics, "notes", ()):
        click.echo(f"note: {note}", err=True)
