"""The command ``mb2fmu mcp``."""

from __future__ import annotations

from pathlib import Path

import click

from mb2fmu.cli.command_options import add_quiet_and_debug_options


@click.command(short_help="Tools for agents, over stdin and stdout.")
@add_quiet_and_debug_options
def mcp() -> None:
    """Offers new, adopt, check, run, simulate, audit and explain as tools of the Model Context Protocol.

    A client starts this command in the folder of the models and talks to it over stdin and stdout; no port is opened.
    Each answer ends in a verdict. A tool takes files of that folder only. Models are Python, and run with your rights.
    Needs pip install 'mb2fmu[mcp]'.

    \b
    Example, in the settings of a client:
      {"mcpServers": {"mb2fmu": {"command": "mb2fmu", "args": ["mcp"], "cwd": "/home/me/models"}}}
    """
    from mb2fmu.pipeline.agent_server.mcp_tool_server import serve_mcp_tools

    serve_mcp_tools(Path.cwd())
