"""Package: from files to an archive, and back.

Input: ``FileTree``, ``FmuInterface``. Output: an ``.fmu``, or the ``FileTree`` in one.

Promises: the same files give the same bytes, whatever the day, folder, user or machine; an archive appears whole or
not at all, and with its report or not at all; what is no FMU is refused. Must not change what is in the files.
"""

from mb2fmu.fmu.package.embedded_reference import Table, reference_files
from mb2fmu.fmu.package.fmu_archive import archived, pack, unpack
from mb2fmu.fmu.package.fmu_pictures import pictures, raster
from mb2fmu.fmu.package.native_fmu import build_native, core_of, digest, with_page, with_proof
from mb2fmu.fmu.package.publishing import private_folder, publish, way_between, write_new, write_tree, write_whole
from mb2fmu.fmu.package.python_fmu import build_pythonfmu

__all__ = [
    "Table",
    "archived",
    "build_native",
    "build_pythonfmu",
    "core_of",
    "digest",
    "pack",
    "pictures",
    "private_folder",
    "publish",
    "raster",
    "reference_files",
    "unpack",
    "way_between",
    "with_page",
    "with_proof",
    "write_new",
    "write_tree",
    "write_whole",
]
