"""The command ``mb2fmu watch``."""

from __future__ import annotations

from pathlib import Path

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    is_quiet_option_given,
    set_option,
)
from mb2fmu.cli.termination_signals import TerminationSignal
from mb2fmu.errors import Fault, ModelError


@click.command(short_help="A page that follows a model file while you write it.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the page.  [default: a free one]"
)
@click.option("--no-validate", is_flag=True, help="Show the motion only.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@combine_click_options(at_option, set_option, add_quiet_and_debug_options)
def watch(
    model: Path, port: int, no_validate: bool, opens: bool, at: dict[str, str], arguments: dict[str, str]
) -> None:
    """Shows the mechanism, its plots and the verdict on a page, and renews it whenever the file is saved.

    The page is at 127.0.0.1: only this machine can read it. The motion comes first; the validation runs behind it. A
    model that is wrong is a message on the page, until it is right again. Ctrl-C ends the command; nothing stays.

    \b
    Examples:
      mb2fmu watch crane.py
      mb2fmu watch crane.py --at m=2 --at 'pin.angle=30 deg'
      mb2fmu watch arm.urdf --open --no-validate
    """
    import webbrowser

    from mb2fmu.model.model_loading import resolve_model_argument
    from mb2fmu.pipeline.live_view.model_watch_server import serve_model_watch_page

    path = resolve_model_argument(model)
    if not path.is_file():
        raise ModelError("there is nothing to watch:", [Fault("there is no such file", str(path), "mb2fmu new NAME")])

    def print_address(address: str) -> None:
        """Print the address, and open it where that is requested."""
        if not is_quiet_option_given():
            click.echo(f"{path.name} is shown at {address}; Ctrl-C ends this.")
        if opens:
            webbrowser.open(address)

    try:
        serve_model_watch_page(
            path, port=port, validates=not no_validate, at=at, arguments=arguments, on_start=print_address
        )
    except TerminationSignal:
        raise
    except KeyboardInterrupt:
        pass  # that is how this command ends
