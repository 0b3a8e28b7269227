"""Platforms that an FMU can be built for, with their names in zig and FMI.

Sources: FMI 2.0.5 section 2.3 and FMI 3.0.2 section 2.5.1.4.1 (names of the folders). FMI 2 knows ``linux64``,
``win64`` and ``darwin64`` for x86-64, and ``aarch64-darwin``; other names of that form stand for any other platform. An
importer on a Mac with an Arm processor may look into ``darwin64`` only, so what lies there holds both processors' code.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from mb2fmu.errors import Fault, PlatformError

Processor = Literal["x86_64", "aarch64"]
System = Literal["linux", "windows", "darwin"]


@dataclass(frozen=True, slots=True)
class TargetPlatform:
    """One kind of machine.

    Attributes:
        processor: FMI 3's word for it.
        system: FMI 3's word for it.
        target: What zig calls it, with the oldest version of the system's library that is served.
        fmi2: Folder under ``binaries/`` in FMI 2.
        extension: Of shared libraries, with the dot.
    """

    processor: Processor
    system: System
    target: str
    fmi2: str
    extension: str

    def __post_init__(self) -> None:
        if not self.target.startswith(f"{self.processor}-"):
            raise ValueError(f"{self.target} is not a target of {self.processor}")

    @property
    def name(self) -> str:
        """FMI 3's name, and the one that users write: ``x86_64-linux``."""
        return f"{self.processor}-{self.system}"

    def __str__(self) -> str:
        return self.name

    def folder(self, fmi: int) -> str:
        """Return the folder under ``binaries/``.

        Args:
            fmi: 2 or 3.
        """
        return self.fmi2 if fmi == 2 else self.name


X86_64_LINUX = TargetPlatform("x86_64", "linux", "x86_64-linux-gnu.2.17", "linux64", ".so")
X86_64_WINDOWS = TargetPlatform("x86_64", "windows", "x86_64-windows-gnu", "win64", ".dll")
X86_64_DARWIN = TargetPlatform("x86_64", "darwin", "x86_64-macos.10.15", "darwin64", ".dylib")
AARCH64_LINUX = TargetPlatform("aarch64", "linux", "aarch64-linux-gnu.2.17", "aarch64-linux", ".so")
AARCH64_WINDOWS = TargetPlatform("aarch64", "windows", "aarch64-windows-gnu", "aarch64-windows", ".dll")
AARCH64_DARWIN = TargetPlatform("aarch64", "darwin", "aarch64-macos.11.0", "aarch64-darwin", ".dylib")

PLATFORMS = (X86_64_LINUX, X86_64_WINDOWS, X86_64_DARWIN, AARCH64_LINUX, AARCH64_WINDOWS, AARCH64_DARWIN)
"""All of them, in the order in which they are built and listed."""

WASM_COMPONENT_FOLDER = "wasm32-wasip2"
"""The folder of FMI's layered standard for WebAssembly (a draft). It is none of ``PLATFORMS``: an importer does not
load its file as a library, and an FMU that has one says so in ``extra/``."""

_PLATFORMS_BY_NAME = MappingProxyType(
    {each.name: (each,) for each in PLATFORMS}
    | {"linux64": (X86_64_LINUX,), "win64": (X86_64_WINDOWS,), "darwin64": (X86_64_DARWIN, AARCH64_DARWIN)}
)
_PROCESSORS = MappingProxyType(
    {"x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
)
_SYSTEMS = MappingProxyType({"linux": "linux", "win32": "windows", "cygwin": "windows", "darwin": "darwin"})


def host_platform() -> TargetPlatform:
    """Return the platform of the running Python.

    Raises:
        PlatformError: If no FMU can be built for it.
    """
    system = _SYSTEMS.get(sys.platform, sys.platform)
    processor = _PROCESSORS.get(platform.machine().lower(), platform.machine())
    found = _PLATFORMS_BY_NAME.get(f"{processor}-{system}", ())
    if not found or sys.maxsize < 2**32:
        bits = 64 if sys.maxsize > 2**32 else 32
        raise PlatformError(
            "no FMU can be built for this machine:",
            [
                Fault(
                    f"{platform.machine()} ({bits} bit) with {sys.platform} is not among {_list_platform_names()}",
                    "host",
                    "name the platforms that the FMU is for",
                )
            ],
        )
    return found[0]


def parse_platforms(text: str) -> tuple[TargetPlatform, ...]:
    """Read a platform as users write it.

    Args:
        text: ``host_platform``, ``all``, or names separated by commas: FMI 3's (``x86_64-linux``), ``linux64``,
            ``win64``, ``darwin64`` (both processors) or ``host_platform``.

    Returns:
        Each platform once, in the order of ``PLATFORMS``.

    Raises:
        PlatformError: With every name that is not known.
    """
    names = [name.strip().lower() for name in text.split(",")]
    chosen: set[TargetPlatform] = set()
    faults = []
    for name in names:
        if name == "all":
            chosen.update(PLATFORMS)
        elif name == "host":
            chosen.add(host_platform())
        elif name in _PLATFORMS_BY_NAME:
            chosen.update(_PLATFORMS_BY_NAME[name])
        else:
            what = f"there is no platform {name!r}" if name else "a name is missing"
            faults.append(Fault(what, "platform", f"host, all, or names out of {_list_platform_names()}"))
    if faults:
        raise PlatformError(f"the platforms cannot be read from {text!r}:", faults)
    return tuple(each for each in PLATFORMS if each in chosen)


def separate_wasm_platform(text: str) -> tuple[str, bool]:
    """Remove the component from a list of platforms for :func:`parse_platforms`.

    Args:
        text: As for :func:`parse_platforms`, and ``wasm32-wasip2`` among the names.

    Returns:
        The other names, empty where there are none; and whether the component is requested.
    """
    names = text.split(",")
    others = [name for name in names if name.strip().lower() != WASM_COMPONENT_FOLDER]
    return ",".join(others), len(others) < len(names)


def _list_platform_names() -> str:
    """Return the names of all platforms, for a message."""
    return ", ".join([*(each.name for each in PLATFORMS), WASM_COMPONENT_FOLDER])
