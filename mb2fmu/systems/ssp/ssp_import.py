"""``read_ssp``: an ``.ssp`` of SSP 1.0 or 2.0 (or the draft 2.1), own or foreign, becomes a ``CoupledSystem``.

Read are components that are FMUs, connections with their linear transformations, parameter values (SSV) and mappings
(SSM), inside the structure or in files, and the default experiment with the fixed step of OMSimulator or libcosim.
What is not read is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from lxml import etree

from mb2fmu.errors import Fault
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.package import read_archive, write_file_tree
from mb2fmu.model.experiment_defaults import DEFAULT_STEP_COUNT
from mb2fmu.systems.coupled_system import CoupledSystem, DeclaredParameter, DeclaredTarget, Value
from mb2fmu.systems.ssp.ssp_archive import STRUCTURE, find_schema_faults
from mb2fmu.systems.wired_system import CouplingError

_SILENT = ("Annotations", "ConnectionGeometry")
_NUMBERS = (
    "Real", "Integer", "Enumeration",  # SSP 1.0
    "Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64",
)  # fmt: skip
_UNIT_TYPES = ("application/x-fmu-sharedlibrary", "")

Element = etree._Element  # noqa: SLF001  lxml has no public name for it


@dataclass(frozen=True)
class SspExperiment:
    """Settings of an archive's run; None: as the archive says, or the default."""

    step: float | None = None
    stop: float | None = None
    order: int = 1
    passes: int = 1
    loops: Any = "refuse"


def read_ssp(path: Path, folder: Path, run: SspExperiment) -> CoupledSystem:
    """Read a system, and write its units into a folder.

    Args:
        path: Of the archive.
        folder: For the FMUs; must live until they are read.
        run: How it is run.

    Raises:
        PackageError: If it is no archive, or members would land outside of a folder.
        CouplingError: With everything that does not follow SSP, or is not read.
    """
    tree = read_archive(path, needed=STRUCTURE, what="SSP archive")
    reader = _SspReader(tree, path.name)
    system = reader.system(run)
    if reader.faults:
        raise CouplingError(f"{path.name} cannot be read as a system:", reader.faults)
    write_file_tree(tree, folder)
    system.source = folder / STRUCTURE
    return system


class _SspReader:
    """Reads one archive and collects faults.

    Args:
        tree: Its files.
        where: Its name, for messages.
    """

    def __init__(self, tree: FileTree, where: str) -> None:
        self._tree, self._where = tree, where
        self.faults: list[Fault] = []

    def system(self, run: SspExperiment) -> CoupledSystem:
        """Return the declared system, not joined yet."""
        root = self._parsed(STRUCTURE)
        top = None if root is None else root.find("{*}System")
        made = CoupledSystem(_identifier((top.get("name") if top is not None else "") or Path(self._where).stem))
        made.where = self._where
        if root is None or top is None:
            if root is not None:
                self._tell("the structure has no system", STRUCTURE)
            return made
        made.description = top.get("description", "")
        values = self._outer_values(made, top)
        for element in top.iterfind("{*}Elements/*"):
            self._element(made, element, values)
        for connection in top.iterfind("{*}Connections/{*}Connection"):
            self._connection(made, connection)
        self._experiment(made, root, run)
        return made

    def _tell(self, what: str, where: str, remedy: str = "") -> None:
        """Add a fault with its place in the archive."""
        self.faults.append(Fault(what, f"{self._where}: {where}", remedy))

    def _line_of(self, element: Element) -> str:
        """Return the place of an element, for messages: archive, member and line."""
        return f"{self._where}: {STRUCTURE}:{element.sourceline}"

    def _parsed(self, name: str) -> Element | None:
        """Return a file of the archive as XML that follows its schema; None after a fault."""
        try:
            root = etree.fromstring(self._tree[name], etree.XMLParser(resolve_entities=False, no_network=True))
        except etree.XMLSyntaxError as error:
            self._tell(f"is no XML: {error.msg}", name)
            return None
        for each in find_schema_faults(name, self._tree[name]):
            self.faults.append(Fault(each.what, f"{self._where}: {each.where}"))
        return root

    def _inside(self, source: str, place: str) -> str | None:
        """Return the archive's member that a source names; None after a fault."""
        name = PurePosixPath(source.removeprefix("./"))
        if ":" in source or name.is_absolute() or ".." in name.parts or "\\" in source:
            self._tell(f"{source!r} lies outside of the archive", place, "put it into resources/")
        elif str(name) not in self._tree:
            self._tell(f"{source!r} is not in the archive", place)
        else:
            return str(name)
        return None

    def _element(self, made: CoupledSystem, element: Element, values: Mapping[str, Mapping[str, Value]]) -> None:
        """Read a component."""
        kind, name = etree.QName(element).localname, element.get("name", "")
        if kind != "Component" or element.get("type", "") not in _UNIT_TYPES:
            said = "a nested system" if kind == "System" else element.get("type") or kind
            self._tell(f"{name} is {said}, which is not read", STRUCTURE, "put its units into the system itself")
            return
        source = self._inside(element.get("source", ""), f"component {name}")
        if source is None:
            return
        place, outer = f"component {name}", values.get(name, {})
        own: dict[str, Value] = {}
        for binding in element.iterfind("{*}ParameterBindings/{*}ParameterBinding"):
            if binding.find("{*}ParameterMapping") is None:
                own |= dict(self._bound(binding, place))
                continue
            given = {f"{name}.{variable}" for variable in outer} | _followers(made)
            for each in self._mapped(binding, place, f"{name}."):
                kept = tuple(target for target in each.targets if target.variable not in given)
                made.parameters += [replace(each, targets=kept)] if kept else []
        own |= outer  # what the system says has precedence
        mapped = _followers(made)
        made.component(name, source, values={key: own[key] for key in own if f"{name}.{key}" not in mapped})
        made.components[-1] = replace(made.components[-1], where=self._line_of(element))

    def _outer_values(self, made: CoupledSystem, top: Element) -> dict[str, dict[str, Value]]:
        """Return values bound to the whole system: component → variable → value; mapped ones become its parameters."""
        found: dict[str, dict[str, Value]] = {}
        place = "the system's parameters"
        for binding in top.iterfind("{*}ParameterBindings/{*}ParameterBinding"):
            if binding.find("{*}ParameterMapping") is not None:
                made.parameters += self._mapped(binding, place)
                continue
            for name, value in self._bound(binding, place):
                component, dot, variable = name.partition(".")
                if dot:
                    found.setdefault(component, {})[variable] = value
                else:
                    self._tell(f"{name} names no component", place, "write component.variable")
        return found

    def _mapped(self, binding: Element, place: str, within: str = "") -> Iterator[DeclaredParameter]:
        """Yield parameters with their mapped variables; ``within`` is ``component.`` or empty."""
        prefix = within + binding.get("prefix", "")
        values = self._part(binding, "ParameterValues", "ParameterSet", place)
        mapping = self._sourced(_found(binding, "ParameterMapping"), "ParameterMapping", place)
        entries = [] if mapping is None else list(mapping.iterfind("{*}MappingEntry"))
        for parameter in values.iterfind("{*}Parameters/{*}Parameter") if values is not None else ():
            name = parameter.get("name", "")
            targets = tuple(
                DeclaredTarget(prefix + entry.get("target", ""), *_line(entry), not _raw(entry))
                for entry in entries
                if entry.get("source") == name
            )
            value = self._value(parameter, place) if targets else None  # others are not applied
            if value is not None:
                yield DeclaredParameter(within + name, value, targets, f"{self._where}: {place}")

    def _bound(self, binding: Element, place: str) -> Iterator[tuple[str, Value]]:
        """Yield (name, value) of one binding without mapping, with its prefix."""
        prefix = binding.get("prefix", "")
        values = self._part(binding, "ParameterValues", "ParameterSet", place)
        for parameter in values.iterfind("{*}Parameters/{*}Parameter") if values is not None else ():
            value = self._value(parameter, place)
            if value is not None:
                yield prefix + parameter.get("name", ""), value

    def _part(self, binding: Element, inline: str, root: str, place: str) -> Element | None:
        """Return values inside the binding, or in the file that it names."""
        holder = binding.find(f"{{*}}{inline}")
        if holder is not None:
            return holder.find(f"{{*}}{root}")
        return self._sourced(binding, root, place)

    def _sourced(self, holder: Element, inline: str, place: str) -> Element | None:
        """Return the content of a holder: its source, or its own elements."""
        if holder.get("source") is None:
            return holder.find(f"{{*}}{inline}")
        name = self._inside(holder.get("source", ""), place)
        return None if name is None else self._parsed(name)

    def _value(self, parameter: Element, place: str) -> Value | None:
        """Return a number, with its unit if it says one; None after a fault."""
        for kind in _NUMBERS:
            typed = parameter.find(f"{{*}}{kind}")
            if typed is not None:
                number = float(typed.get("value", "nan"))
                unit = typed.get("unit")
                return number if unit is None else (number, unit)
        self._tell(f"{parameter.get('name')} is no number, which is not read", place)
        return None

    def _connection(self, made: CoupledSystem, connection: Element) -> None:
        """Add a connection; tell of ends at the system's own edge and of transformations that are not read."""
        ends = [connection.get(f"{end}Element") for end in ("start", "end")]
        names = [connection.get(f"{end}Connector", "") for end in ("start", "end")]
        if None in ends:
            what = f"{names[0]} → {names[1]} goes over the system's own edge, which is not read"
            self._tell(what, STRUCTURE, "connect an FMU there")
            return
        transformation = connection.find("{*}LinearTransformation")
        late = connection.find("{*}Annotations/{*}Annotation/{*}Delay")
        given = None
        if transformation is not None:
            given = float(transformation.get("factor", "1")), float(transformation.get("offset", "0"))
        elif others := [each for each in connection if etree.QName(each).localname not in _SILENT]:
            child = etree.QName(others[0]).localname
            self._tell(f"{names[0]} → {names[1]}: {child} is not read", STRUCTURE)
        raw = _raw(connection)
        made.connect(f"{ends[0]}.{names[0]}", f"{ends[1]}.{names[1]}", transformation=given, convert=not raw,
                     delay=0.0 if late is None else float(late.get("seconds", "0")))  # fmt: skip
        made.connections[-1] = replace(made.connections[-1], where=self._line_of(connection))

    def _experiment(self, made: CoupledSystem, root: Element, run: SspExperiment) -> None:
        """Set stop time and step as given, else as in the archive."""
        said = root.find("{*}DefaultExperiment")
        stop = run.stop or float((said.get("stopTime") if said is not None else None) or 1.0)
        steps = [each.get("stepSize") or each.get("baseStepSize") for each in root.iterfind(".//{*}FixedStepMaster")]
        steps += [each.get("baseStepSize") for each in root.iterfind(".//{*}FixedStepAlgorithm")]
        step = run.step or float(next((each for each in steps if each), stop / DEFAULT_STEP_COUNT))
        made.experiment(stop=stop, step=step, order=run.order, passes=run.passes, loops=run.loops)


def _line(entry: Element) -> tuple[float, float]:
    """Return (factor, offset) of a mapping's entry."""
    transformation = entry.find("{*}LinearTransformation")
    if transformation is None:
        return 1.0, 0.0
    return float(transformation.get("factor", "1")), float(transformation.get("offset", "0"))


def _raw(entry: Element) -> bool:
    """Pass numbers unchanged, without conversion of units."""
    return entry.get("suppressUnitConversion") in {"true", "1"}


def _found(parent: Element, tag: str) -> Element:
    """Return a child that the schema demands, in any version's namespace."""
    found = parent.find(f"{{*}}{tag}")
    assert found is not None
    return found


def _followers(made: CoupledSystem) -> set[str]:
    """Return variables that follow parameters of the system."""
    return {target.variable for parameter in made.parameters for target in parameter.targets}


def _identifier(name: str) -> str:
    """Return the name as an identifier, with _ in place of other characters."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return text if text[:1].isalpha() or text[:1] == "_" else f"_{text}"
