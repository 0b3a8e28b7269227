"""Rules of publication: FMUs that can be validated here, and reports that belong to an FMU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, PackageError, PlatformError
from mb2fmu.pipeline.derivation.formulation_and_build_options import ExportOptions
from mb2fmu.temporary_files import make_temporary_folder

if TYPE_CHECKING:
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.report import ReportVerdictAndFmuHashes


@dataclass(frozen=True, slots=True)
class UnpublishedFmuAndReport:
    """An FMU and its report while they are made: in a private folder, until both are published together.

    Attributes:
        path: Where the FMU will be.
        private_folder: The folder until then.
    """

    path: Path
    private_folder: Path

    @property
    def page(self) -> Path:
        """Path of the report to write."""
        return self.path.with_suffix(".html")

    @property
    def archive_path(self) -> Path:
        """Path of the archive until it is published."""
        return self.private_folder / self.path.name

    def pack(self, tree: InMemoryFileTree) -> None:
        """Write the archive."""
        from mb2fmu.fmu import package

        package.write_fmu_archive(tree, self.archive_path)

    def publish(self) -> None:
        """Publish the FMU alone; the report of an FMU that it replaces is removed."""
        from mb2fmu.fmu import package

        package.publish_files(
            self.private_folder, [self.path.name], [self.page.name] if _is_fmu_report(self.page) else []
        )

    def publish_with_report(self, archive: bytes, page: bytes) -> None:
        """Publish an archive, instead of what was packed, together with its report."""
        from mb2fmu.fmu import package

        package.write_file_atomically(self.archive_path, archive)
        package.write_file_atomically(self.private_folder / self.page.name, page)
        package.publish_files(self.private_folder, [self.path.name, self.page.name])


@contextmanager
def publish_fmu_and_report(name: str, folder: Path | str) -> Iterator[UnpublishedFmuAndReport]:
    """Return the results to publish in a folder as ``name.fmu`` and ``name.html``; on failure, nothing appears."""
    from mb2fmu.fmu import package

    path = Path(folder) / f"{name}.fmu"
    with package.make_unpublished_folder(path.parent, path.stem) as private:
        yield UnpublishedFmuAndReport(path, private)


@dataclass(frozen=True, slots=True)
class ReportToFmuMatch:
    """Relation between a report and an FMU.

    Attributes:
        report: The page.
        fmu: The archive.
        claim: What the page says of itself.
        together: The page is about this very FMU.
    """

    report: Path
    fmu: Path
    claim: ReportVerdictAndFmuHashes
    together: bool

    @property
    def passed(self) -> bool:
        """True if the page is about this FMU, and says that it passed."""
        return self.together and self.claim.verdict == "passed"

    @property
    def text(self) -> str:
        """One sentence for people."""
        if not self.together:
            return f"{self.report} is about another FMU than {self.fmu}: do not trust its verdict"
        verdict = self.claim.verdict
        outcome = {"passed": "it passed", "failed": "it failed"}.get(verdict, verdict or "nobody has run it")
        return f"{self.report} is about {self.fmu}: {outcome}"


def match_report_to_fmu(report: Path, fmu: Path | None = None) -> ReportToFmuMatch:
    """Return the relation between a report and an FMU.

    Args:
        report: A page of mb2fmu: from beside an FMU, or out of its ``documentation``.
        fmu: The archive; None: the one beside the report, of the same name.

    Raises:
        PackageError: If a file cannot be read, the page names no FMU, or the archive is no FMU.
    """
    from mb2fmu.fmu import package

    path = report.with_suffix(".fmu") if fmu is None else fmu
    claim = _read_claim(report)
    if claim is None:
        what, remedy = "it names no FMU by its hash", "was it made by mb2fmu? make it again with this version"
        raise PackageError(f"{report} cannot be checked:", [Fault(what, str(report), remedy)])
    core = package.hash_file_tree(package.remove_validation_report(package.read_archive(path)))
    archive = hashlib.sha256(path.read_bytes()).hexdigest()
    return ReportToFmuMatch(report, path, claim, claim.is_about(archive, core))


@contextmanager
def copy_fmu_for_validation(fmu: Path) -> Iterator[Path]:
    """Return a copy of an FMU, of the same name, so that the judged and hashed file cannot change.

    Args:
        fmu: The archive, which others may replace meanwhile.

    Raises:
        PackageError: If it is no FMU.
        ToolError: If there is no room for the copy.
    """
    from mb2fmu.fmu import package

    package.read_archive(fmu)  # what is wrong with it is reported by the path that the user wrote
    with make_temporary_folder("run the FMU") as folder:
        copy = folder / fmu.name
        copy.write_bytes(fmu.read_bytes())
        yield copy


def _is_fmu_report(page: Path) -> bool:
    """Return whether a file is an existing report of an FMU; other pages are left alone."""
    return page.is_file() and _read_claim(page) is not None


def _read_claim(page: Path) -> ReportVerdictAndFmuHashes | None:
    """Return the claim of a page about itself.

    Raises:
        PackageError: If it cannot be read.
    """
    from mb2fmu.report import read_report_verdict_and_fmu_hashes

    try:
        return read_report_verdict_and_fmu_hashes(page.read_bytes())
    except OSError as error:
        fault = Fault(error.strerror or str(error), str(page), "is it the right path?")
        raise PackageError("the report cannot be read:", [fault]) from error


def refuse_unrunnable_fmu(options: ExportOptions) -> None:
    """Raise, before anything is derived, for an FMU that cannot run on this machine.

    Raises:
        ToolError: If packages that judge FMUs or show motion are not installed (extras ``audit``, ``meshes``).
        PlatformError: If the platforms requested are all others than this machine's.
    """
    from mb2fmu.fmu import toolchain

    require_packages("the validation", "lief", "fmu_manipulation_toolbox", "trimesh")
    if options.get("backend") == "python":
        return
    requested = options.get("platforms", "host")
    host = toolchain.host_platform()
    native, _ = toolchain.separate_wasm_platform(requested)
    if not native or host not in toolchain.parse_platforms(native):
        remedy = f"add the host (--platform host,{requested}), or write it without a validation: mb2fmu export"
        fault = Fault(f"{requested} is not {host}, where it would have to run", "--platform", remedy)
        raise PlatformError("the FMU cannot be validated on this machine:", [fault])
