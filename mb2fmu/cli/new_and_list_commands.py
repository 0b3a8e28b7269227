"""The commands ``mb2fmu new`` and ``mb2fmu list``: the first ones that a user needs."""

from __future__ import annotations

from pathlib import Path

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    json_file_option,
    print_unless_quiet,
    write_json_result,
)


@click.command(short_help="Write a commented, working model to start from.")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Folder to write to; made if it is not there.  [default: here]",
)
@combine_click_options(json_file_option, add_quiet_and_debug_options)
def new(name: str, folder: Path, json_file: Path | None) -> None:
    """Writes NAME.py here: a commented, working model to start from.

    \b
    Example:
      mb2fmu new crane
      mb2fmu run crane.py
    """
    from mb2fmu.model.model_template import write_model_template

    path = write_model_template(name.removesuffix(".py"), folder)
    if not write_json_result({"model": str(path)}, json_file):
        print_unless_quiet(f"{path}: run it with: mb2fmu run {path}")


@click.command("list", short_help="List the models that come with mb2fmu, or those of a folder.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
@combine_click_options(json_file_option, add_quiet_and_debug_options)
def list_models(folder: Path | None, json_file: Path | None) -> None:
    """Lists models with a line each, without running them: those that come with mb2fmu, or those in DIR.

    \b
    Examples:
      mb2fmu list
      mb2fmu run cart_pole
      mb2fmu list .
      mb2fmu list --json
    """
    from mb2fmu.model import list_models as listed_in
    from mb2fmu.model import shipped_models_folder

    listed = listed_in(folder or shipped_models_folder())
    rows = [{"name": model.name, "summary": model.summary, "path": str(model.path)} for model in listed]
    if write_json_result({"models": rows}, json_file):
        return
    if not listed:
        click.echo(f"no models in {folder}; write a first one: mb2fmu new NAME", err=True)
        return
    width = max(len(model.name) for model in listed)
    for model in listed:
        print_unless_quiet(f"{model.name:{width}}  {model.summary}")
    if folder is None:
        print_unless_quiet(
            f"\nRun one by its name: mb2fmu run {listed[0].name}. Read them in {shipped_models_folder()}"
        )
