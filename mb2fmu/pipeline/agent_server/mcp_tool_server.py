"""``serve_mcp_tools``: the tools of ``mb2fmu mcp``, each a command of mb2fmu."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, Mb2FmuError, ModelError
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
from mb2fmu.pipeline.agent_server.agent_server_folder import AgentServerFolder
from mb2fmu.pipeline.agent_server.agent_tool_answer import AgentToolAnswer, run_command_for_agent
from mb2fmu.pipeline.agent_server.command_json_summary import (
    drop_equations_from_facts,
    select_adoption_facts,
    select_audit_facts,
    select_created_model_facts,
    select_run_command_facts,
    select_simulation_facts,
    select_validation_facts,
)
from mb2fmu.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
mb2fmu turns a mechanism written with SymPy into a Functional Mock-up Unit (FMU), and validates that it moves as the
mechanism does. Every answer ends in a verdict. Only "validated" means that the FMU was compared with independent
equations and agrees; do not claim more than the verdict says. Files are named relative to the folder of this server;
others are refused. Begin with `new` or `adopt`, go on with `check`, `simulate` and `run`; after a failure call
`explain`. FMUs and reports are written to out/."""

_VALIDATED: Mapping[int, str] = {0: "validated", 1: "not validated"}
_AUDITED: Mapping[int, str] = {0: "no errors found", 1: "errors found", 4: "no errors found, not run: no binary for it"}


class AgentTools:
    """The tools of one folder; their docstrings are what agents read.

    Args:
        folder: Where all files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = AgentServerFolder(folder.resolve())

    async def new(self, name: str, text: str = "") -> AgentToolAnswer:
        """Write a model file NAME.py: a commented model that works, to be edited; or your own text.

        Args:
            name: A Python identifier, such as crane.
            text: The whole model file; empty: a commented model. A file that is there is replaced by a text only.
        """
        path = self._folder.find_file(f"{name.removesuffix('.py')}.py")
        written = {0: "written, not validated"}
        if text:
            write_file_atomically(path, text.encode())
            place = path.relative_to(self._folder.path).as_posix()
            return AgentToolAnswer(written[0], f"{place}: run it next", is_good=True, facts={"model": place})
        arguments = ["new", "-o", str(path.parent), "--", path.stem]
        return await run_command_for_agent(
            self._folder.path, arguments, written, self._make_relative(select_created_model_facts), 60.0
        )

    async def adopt(
        self, script: str, label: str = "", inline: bool = False, replace: bool = False, time_limit: float = 300.0
    ) -> AgentToolAnswer:
        """Write a model file for a SymPy script or notebook, which stays as it is. The script is run.

        Args:
            script: SCRIPT.py or NOTEBOOK.ipynb; the model file is SCRIPT_model.py beside it.
            label: Variable of the mechanics, where the script makes several.
            inline: Whether the model file holds the script's lines and needs no script.
            replace: Whether a model file that is there is replaced.
            time_limit: In s.
        """
        path = self._folder.find_file(script)
        output = self._folder.find_file(str(path.with_name(f"{path.stem}_model.py")))
        arguments = ["adopt", str(path), "-o", str(output)]
        arguments += [f"--object={label}"] * bool(label) + ["--inline"] * inline + ["--force"] * replace
        written = {0: "written, not validated"}
        select = self._make_relative(select_adoption_facts)
        return await run_command_for_agent(self._folder.path, arguments, written, select, time_limit)

    async def check(self, model: str, fmu: str = "", time_limit: float = 300.0) -> AgentToolAnswer:
        """Check a model without making an FMU, and show its equations; or compare an FMU of any tool with the model.

        Args:
            model: MODEL.py, ROBOT.urdf, or the name of a model that comes with mb2fmu.
            fmu: NAME.fmu; it is run and compared with the model's reference.
            time_limit: In s.
        """
        if fmu:
            return await self._validate(fmu, model, [], time_limit)
        arguments = ["equations", self._folder.find_model(model)]
        verdicts = {0: "equations derived, not validated"}
        return await run_command_for_agent(
            self._folder.path, arguments, verdicts, drop_equations_from_facts, time_limit
        )

    async def run(
        self, model: str, at: dict[str, str] | None = None, fmi: Literal["2", "3"] = "2", time_limit: float = 600.0
    ) -> AgentToolAnswer:
        """Make the FMU of a model and validate it against independent equations; this is the judge.

        Args:
            model: MODEL.py, ROBOT.urdf, or the name of a model that comes with mb2fmu.
            at: Other values of parameters, start values or inputs: {"m": "2", "theta": "30 deg"}.
            fmi: Version of FMI.
            time_limit: In s.
        """
        arguments = ["run", self._folder.find_model(model), "-o", str(self._folder.find_output_folder()), "--fmi", fmi]
        arguments += _form_assignments("--at", at)
        return await run_command_for_agent(
            self._folder.path, arguments, _VALIDATED, select_run_command_facts, time_limit
        )

    async def simulate(
        self,
        model: str,
        at: dict[str, str] | None = None,
        inputs: dict[str, str] | None = None,
        stop: float | None = None,
        time_limit: float = 120.0,
    ) -> AgentToolAnswer:
        """Simulate a model or an FMU and report start, end and range of each variable. Nothing is judged.

        Args:
            model: MODEL.py, ROBOT.urdf, NAME.fmu, or the name of a model that comes with mb2fmu.
            at: Other values of parameters, start values or inputs.
            inputs: Formulas of t: {"force": "5*sin(t)"}.
            stop: End in s.
            time_limit: In s.
        """
        table = self._folder.find_output_folder() / f"{Path(model).stem}.csv"
        arguments = ["simulate", self._folder.find_model(model), "--csv", str(table)]
        arguments += _form_assignments("--at", at) + _form_assignments("--input", inputs)
        arguments += [] if stop is None else [f"--stop={stop!r}"]
        verdicts = {0: "simulated, not validated"}
        return await run_command_for_agent(self._folder.path, arguments, verdicts, select_simulation_facts, time_limit)

    async def audit(self, fmu: str, run: bool = True, time_limit: float = 300.0) -> AgentToolAnswer:
        """Judge any FMU, from any tool: does it do what its description says?

        Args:
            fmu: NAME.fmu.
            run: Whether it is run; otherwise only its files are judged.
            time_limit: In s.
        """
        return await self._audit(fmu, ["--no-run"] * (not run), time_limit)

    async def explain(self, file: str, model: str = "", time_limit: float = 600.0) -> AgentToolAnswer:
        """Explain a failure: repeat what failed, and report all that failed, the likeliest cause, and every check.

        Args:
            file: MODEL.py or ROBOT.urdf, which is run; or NAME.fmu, which is audited, or compared with a model.
            model: Of an FMU that differs from its model.
            time_limit: In s.
        """
        if model:
            return await self._validate(file, model, ["-v"], time_limit)
        if file.endswith(".fmu"):
            return await self._audit(file, ["-v"], time_limit)
        arguments = ["run", self._folder.find_model(file), "-o", str(self._folder.find_output_folder()), "-v"]
        return await run_command_for_agent(
            self._folder.path, arguments, _VALIDATED, select_run_command_facts, time_limit
        )

    async def _validate(self, fmu: str, model: str, options: list[str], time_limit: float) -> AgentToolAnswer:
        """Compare an FMU with a model."""
        arguments = ["validate", str(self._folder.find_file(fmu)), "--model", self._folder.find_model(model), *options]
        return await run_command_for_agent(
            self._folder.path, arguments, _VALIDATED, select_validation_facts, time_limit
        )

    async def _audit(self, fmu: str, options: list[str], time_limit: float) -> AgentToolAnswer:
        """Run the auditor, within half of the time for itself."""
        budget = f"--budget={max(time_limit / 2.0, 1.0):g}"
        arguments = ["audit", str(self._folder.find_file(fmu)), budget, *options]
        return await run_command_for_agent(self._folder.path, arguments, _AUDITED, select_audit_facts, time_limit)

    def _make_relative(
        self, select_facts: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Return a selection whose ``model`` is a path relative to the folder."""

        def select(facts: dict[str, Any]) -> dict[str, Any]:
            selected = select_facts(facts)
            place = Path(selected["model"])
            return selected | {"model": place.relative_to(self._folder.path).as_posix()}

        return select


def _form_assignments(option: str, values: Mapping[str, str] | None) -> list[str]:
    """Return NAME=VALUE options; a value that names a file is refused."""
    texts = [f"{name}={value}" for name, value in (values or {}).items()]
    for text in texts:
        if text.lower().endswith((".csv", ".json")):
            raise ModelError("this value cannot be used:", [Fault("it names a file", text, "give a number or formula")])
    return [f"{option}={text}" for text in texts]


TOOL_NAMES = ("new", "adopt", "check", "run", "simulate", "audit", "explain")


def _make_agent_tool_server(folder: Path) -> MCPServer[Any]:
    """Return the server of a folder, for a client in the same process or for ``run``.

    Args:
        folder: Where all files are.

    Raises:
        ToolError: If the package mcp is missing.
    """
    require_packages("the server of tools", "mcp")
    from mcp.server.mcpserver import MCPServer

    server: MCPServer[Any] = MCPServer("mb2fmu", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    tools = AgentTools(folder)
    for name in TOOL_NAMES:
        server.add_tool(_make_tool(getattr(tools, name)), name=name, structured_output=False)
    return server


def _make_tool(method: Callable[..., Awaitable[AgentToolAnswer]]) -> Callable[..., Any]:
    """Return a tool that answers by text and JSON; a refusal is an answer, too."""
    from mcp_types import CallToolResult, TextContent

    @functools.wraps(method)
    async def call(**arguments: Any) -> CallToolResult:
        try:
            answer = await method(**arguments)
        except Mb2FmuError as error:
            answer = AgentToolAnswer("refused", str(error))
        content = [TextContent(type="text", text=answer.format_text())]
        refused = not answer.is_good and answer.verdict not in (*_VALIDATED.values(), *_AUDITED.values())
        return CallToolResult(content=[*content], structured_content=answer.format_facts(), is_error=refused)

    call.__annotations__ = {**method.__annotations__, "return": CallToolResult}
    return call


def serve_mcp_tools(folder: Path) -> None:
    """Answer on stdin and stdout until the client closes them.

    Args:
        folder: Where all files are.

    Raises:
        ToolError: If the package mcp is missing.
    """
    _make_agent_tool_server(folder).run("stdio")
