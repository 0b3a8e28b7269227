"""Assemble the native FMU: description, sources, binaries, pictures and licences; later report and reference.

The report is made from the core FMU and put into it in a second step. It can name the core by :func:`hash_file_tree`,
which depends on contents only: taking the two parts out again gives the core back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from typing import Literal

from mb2fmu.errors import Fault, PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.package.embedded_reference_trajectory import REFERENCE_FOLDER, REPORT_PATH
from mb2fmu.fmu.package.fmu_archive import MODEL_DESCRIPTION_MEMBER
from mb2fmu.fmu.package.fmu_icons import make_fmu_pictures

_MB2FMU_LICENCE = "mb2fmu-BSD-3-Clause.txt"
_FMI_LICENCE = "fmi-BSD-2-Clause.txt"
_ZIG_LICENCE = "zig-MIT.txt"
_WASI_LICENCES = {
    "wasi-libc.txt": ("wasi", "LICENSE"),
    "wasi-libc-MIT.txt": ("wasi", "LICENSE-MIT"),
    "musl.txt": ("musl", "COPYRIGHT"),
}
"""Texts about the C library that is in a component of WebAssembly, below zig's ``lib/libc``."""


def assemble_native_fmu(
    sources: InMemoryFileTree,
    binaries: InMemoryFileTree,
    description: InMemoryFileTree,
    interface: FmuInterface,
    *,
    drawn: InMemoryFileTree | None = None,
    compiler: Literal["zig", "cc"] = "zig",
) -> InMemoryFileTree:
    """Assemble the core FMU: everything but report and reference.

    Args:
        sources: From ``emit_c``: ``sources/…``.
        binaries: From the toolchain: ``binaries/<platform>/<model identifier>.<extension>``.
        description: From ``emit_xml``: ``modelDescription.xml`` and what goes with it.
        interface: Names the FMU.
        drawn: The FMU's :func:`make_fmu_pictures`; None: those of a model without a diagram.
        compiler: What made the binaries: parts of its run-time library, with their licences, are in them.

    Returns:
        The FMU. Equal arguments give equal bytes.

    Raises:
        PackageError: If something is missing, misnamed, or stands where it does not belong.
    """
    faults = list(_misplaced_member_faults(sources, binaries, description, interface))
    if faults:
        raise PackageError(f"the FMU {interface.model_name} cannot be put together:", faults)
    return (
        description.joined(sources)
        .joined(binaries)
        .joined(make_fmu_pictures(interface, "") if drawn is None else drawn)
        .joined(_licence_files(sources, binaries, compiler))
    )


def add_documentation_page(core: InMemoryFileTree, page: bytes) -> InMemoryFileTree:
    """Return the core FMU with a page about it: ``documentation/index.html``.

    Args:
        core: Of either backend.
        page: Self-contained HTML.
    """
    return core.joined(InMemoryFileTree({REPORT_PATH: page}))


def add_validation_report(core: InMemoryFileTree, page: bytes, references: InMemoryFileTree) -> InMemoryFileTree:
    """Return the core FMU with its report and its reference trajectory.

    Args:
        core: From :func:`assemble_native_fmu`.
        page: The report: ``documentation/index.html``.
        references: From ``form_embedded_reference_files``.

    Raises:
        PackageError: If the references stand outside of their folder.
    """
    strays = [path for path in references if not path.startswith(f"{REFERENCE_FOLDER}/")]
    if strays:
        raise PackageError(
            "not a reference:", [Fault(f"stands outside of {REFERENCE_FOLDER}", path) for path in strays]
        )
    return add_documentation_page(core, page).joined(references)


def remove_validation_report(fmu: InMemoryFileTree) -> InMemoryFileTree:
    """Return the FMU without report and reference: the inverse of :func:`add_validation_report`."""
    return InMemoryFileTree(
        {path: fmu[path] for path in fmu if path != REPORT_PATH and not path.startswith(f"{REFERENCE_FOLDER}/")}
    )


def hash_file_tree(tree: InMemoryFileTree) -> str:
    """Return the SHA-256 of the contents, in hexadecimal digits.

    It is the hash of the lines that ``sha256sum`` prints for the unpacked files, sorted by path; so it does not depend
    on how an archive was compressed.
    """
    lines = (f"{hashlib.sha256(tree[path]).hexdigest()}  {path}\n" for path in sorted(tree))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _misplaced_member_faults(
    sources: InMemoryFileTree, binaries: InMemoryFileTree, description: InMemoryFileTree, interface: FmuInterface
) -> Iterator[Fault]:
    """Yield members that do not belong into this FMU, or not at their place."""
    if MODEL_DESCRIPTION_MEMBER not in description.files:
        yield Fault("is missing", MODEL_DESCRIPTION_MEMBER)
    elif interface.token.encode() not in description[MODEL_DESCRIPTION_MEMBER]:
        yield Fault(f"is of another FMU than {interface.token}", MODEL_DESCRIPTION_MEMBER)
    for path in sources:
        if not path.startswith("sources/"):
            yield Fault("does not stand in sources/", path)
    for path in binaries:
        parts = path.split("/")
        if len(parts) != 3 or parts[0] != "binaries" or not parts[2].startswith(f"{interface.model_identifier}."):
            yield Fault(f"is not binaries/<platform>/{interface.model_identifier}.<extension>", path)
    if not len(sources) and not len(binaries):
        yield Fault("there are neither sources nor binaries", interface.model_name)


def _licence_files(
    sources: InMemoryFileTree, binaries: InMemoryFileTree, compiler: Literal["zig", "cc"]
) -> InMemoryFileTree:
    """Return licences of the FMU's parts: SPDX identifiers, with the texts."""
    lines = [
        "SPDX-License-Identifier: BSD-3-Clause",
        "",
        "The generated files belong to whoever made the model.",
        f"The fixed files of sources/ and their compiled form are parts of mb2fmu: BSD-3-Clause, {_MB2FMU_LICENCE}.",
    ]
    lines.append("documentation/index.html, where it shows a motion, contains three.js: MIT, see the end of that page.")
    texts = {_MB2FMU_LICENCE: _read_packaged_licence("BSD-3-Clause.txt")}
    if any("/fmi" in path and path.endswith(".h") for path in sources):
        lines.append(f"The headers of the FMI standard in sources/ are under BSD-2-Clause, {_FMI_LICENCE}.")
        texts[_FMI_LICENCE] = _read_packaged_licence("BSD-2-Clause.txt")
    if len(binaries) and compiler == "zig":
        lines.append(f"The binaries contain parts of Zig's run-time library: MIT, {_ZIG_LICENCE}.")
        texts[_ZIG_LICENCE] = _read_zig_licence("LICENSE")
        if any(path.endswith(".wasm") for path in binaries):
            lines.append(
                "That for WebAssembly contains parts of wasi-libc and musl: MIT and others, "
                f"{', '.join(_WASI_LICENCES)}."
            )
            texts |= {name: _read_zig_licence("lib", "libc", *path) for name, path in _WASI_LICENCES.items()}
    texts["license.txt"] = ("\n".join(lines) + "\n").encode()
    return InMemoryFileTree(texts).move_under("documentation/licenses")


def _read_packaged_licence(name: str) -> bytes:
    """Return a licence that mb2fmu carries."""
    return _unix_line_ends(resources.files("mb2fmu.fmu.package").joinpath("licenses", name).read_bytes())


def _read_zig_licence(*path: str) -> bytes:
    """Return a licence from the package ziglang."""
    return _unix_line_ends(resources.files("ziglang").joinpath(*path).read_bytes())


def _unix_line_ends(text: bytes) -> bytes:
    """Return text with line ends of Unix."""
    return text.replace(b"\r\n", b"\n")
