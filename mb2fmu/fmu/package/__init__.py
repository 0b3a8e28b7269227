"""Package: from files to an archive, and back.

Input: ``InMemoryFileTree``, ``FmuInterface``. Output: an ``.fmu``, or the ``InMemoryFileTree`` in one.

Promises: the same files give the same bytes, whatever the day, folder, user or machine; an archive appears whole or
not at all, and with its report or not at all; what is no FMU is refused. Must not change what is in the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.fmu.package.atomic_publishing import (
        make_unpublished_folder,
        publish_files,
        relative_posix_path,
        write_file_atomically,
        write_file_tree,
        write_new_file,
    )
    from mb2fmu.fmu.package.embedded_reference_trajectory import EmbeddedTrajectoryTable, form_embedded_reference_files
    from mb2fmu.fmu.package.fmu_archive import (
        make_fmu_archive,
        read_archive,
        write_files_for_run,
        write_fmu_archive,
    )
    from mb2fmu.fmu.package.fmu_icons import make_fmu_pictures, rasterize_svg
    from mb2fmu.fmu.package.native_fmu_assembly import (
        add_documentation_page,
        add_validation_report,
        assemble_native_fmu,
        hash_file_tree,
        remove_validation_report,
    )
    from mb2fmu.fmu.package.python_fmu import build_python_fmu

__all__ = [
    "EmbeddedTrajectoryTable",
    "add_documentation_page",
    "add_validation_report",
    "assemble_native_fmu",
    "build_python_fmu",
    "form_embedded_reference_files",
    "hash_file_tree",
    "make_fmu_archive",
    "make_fmu_pictures",
    "make_unpublished_folder",
    "publish_files",
    "rasterize_svg",
    "read_archive",
    "relative_posix_path",
    "remove_validation_report",
    "write_file_atomically",
    "write_file_tree",
    "write_files_for_run",
    "write_fmu_archive",
    "write_new_file",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "atomic_publishing": "make_unpublished_folder publish_files relative_posix_path write_file_atomically"
        " write_file_tree write_new_file",
        "embedded_reference_trajectory": "EmbeddedTrajectoryTable form_embedded_reference_files",
        "fmu_archive": "make_fmu_archive read_archive write_files_for_run write_fmu_archive",
        "fmu_icons": "make_fmu_pictures rasterize_svg",
        "native_fmu_assembly": "add_documentation_page add_validation_report assemble_native_fmu hash_file_tree"
        " remove_validation_report",
        "python_fmu": "build_python_fmu",
    },
)
