"""What a driver must know of an FMU's modelDescription.xml, for FMI 2.0 and 3.0; nothing is judged beyond that."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.filetree import FileTree


@dataclass(frozen=True, slots=True)
class UnitVariable:
    """A variable of an FMU: value reference, whether it is a scalar of doubles, causality."""

    reference: int
    real: bool
    causality: str


@dataclass(frozen=True, slots=True)
class UnitDescription:
    """An FMU as its description shows it.

    Attributes:
        version: 2 or 3.
        identifier: ``modelIdentifier`` of its Co-Simulation interface.
        token: ``guid`` or ``instantiationToken``.
        variables: By name.
    """

    version: int
    identifier: str
    token: str
    variables: Mapping[str, UnitVariable]


def read_description(tree: FileTree) -> UnitDescription:
    """Reads the description of an unpacked FMU.

    Raises:
        ValidationError: No readable description, another FMI version, no Co-Simulation, no binary for this machine.
    """
    if "modelDescription.xml" not in tree:
        raise _refused(Fault("has no modelDescription.xml", remedy="this is not an FMU"))
    try:
        root = etree.fromstring(tree["modelDescription.xml"], etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise _refused(Fault(f"is not well-formed: {error}", "modelDescription.xml", "export the FMU again")) from error
    version = str(root.get("fmiVersion", ""))
    major = version.partition(".")[0]
    if major not in {"2", "3"}:
        raise _refused(
            Fault(f"is FMI {version or 'of no version'}", "modelDescription.xml", "FMI 2.0 or 3.0 is needed")
        )
    interface = root.find("CoSimulation")
    if interface is None:
        raise _refused(Fault("offers no Co-Simulation", "modelDescription.xml", "export it for Co-Simulation"))
    found = UnitDescription(
        version=int(major),
        identifier=str(interface.get("modelIdentifier", "")),
        token=str(root.get("guid" if major == "2" else "instantiationToken", "")),
        variables=_variables(root, int(major)),
    )
    _check_platform(tree, found)
    return found


def _variables(root: etree._Element, major: int) -> dict[str, UnitVariable]:
    variables = {}
    for element in root.iterfind("ModelVariables/*"):
        if not isinstance(element.tag, str):
            continue
        scalar = element.find("Dimension") is None
        real = element.find("Real") is not None if major == 2 else element.tag == "Float64" and scalar
        variables[str(element.get("name"))] = UnitVariable(
            int(element.get("valueReference", "-1")), real, str(element.get("causality", "local"))
        )
    return variables


def platform_folder(version: int) -> tuple[str, str]:
    """Folder below ``binaries/`` and file name extension for this machine, as fmpy looks for them."""
    machine = platform.machine().lower()
    arm = machine in {"aarch64", "arm64"}
    system = "windows" if sys.platform.startswith("win") else "darwin" if sys.platform == "darwin" else "linux"
    extension = {"windows": ".dll", "darwin": ".dylib", "linux": ".so"}[system]
    if version == 3:
        return f"{'aarch64' if arm else 'x86_64'}-{system}", extension
    return {"windows": "win64", "darwin": "darwin64", "linux": "linux64"}[system], extension


def _check_platform(tree: FileTree, found: UnitDescription) -> None:
    folder, extension = platform_folder(found.version)
    if f"binaries/{folder}/{found.identifier}{extension}" in tree:
        return
    offered = sorted({path.split("/")[1] for path in tree if path.startswith("binaries/") and path.count("/") >= 2})
    has = f"it has {', '.join(offered)}" if offered else "it has none at all"
    raise _refused(
        Fault(
            f"the unit has no binary for this machine ({folder}): {has}",
            f"binaries/{folder}/{found.identifier}{extension}",
            "validate it on such a machine, or export it for this one",
        )
    )


def _refused(fault: Fault) -> ValidationError:
    return ValidationError("the FMU cannot be run here:", [fault])
