"""three.js from the package trimesh: the library alone, without its loaders.

trimesh's own viewer is one HTML page with three.js (MIT licence) in it; the library is the first statement of its
script and says its licence itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ToolError

THREE_JS_LICENCE = """\
three.js, in the page's script, is under the MIT License:

Copyright © 2010-2022 three.js authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""

_TEMPLATE, _MEMBER = "resources/templates/viewer.zip", "viewer.html.template"
_LIBRARY_START_PATTERN = re.compile(
    r"/\*\*\s* \* @license\s* \* Copyright [0-9-]+ Three\.js Authors\s* \* SPDX-License-Identifier: MIT"
)
_LIBRARY_END_PATTERN = re.compile(r'Object\.defineProperty\(t,"__esModule",\{value:!0\}\)\}\)\);')


@dataclass(frozen=True, slots=True)
class CompressedJavascript:
    """A script, packed.

    Attributes:
        compressed_base64: zlib stream in base64; a browser unpacks it by ``DecompressionStream("deflate")``.
        digest: SHA-256 of the script in base64, as a content security policy names it.
    """

    compressed_base64: str
    digest: str


@cache
def load_three_js() -> CompressedJavascript:
    """Return three.js.

    Raises:
        ToolError: If trimesh is not installed, or does not bring it along as it does today.
    """
    text = read_three_js_source()
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return CompressedJavascript(packed, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())


def read_three_js_source() -> str:
    """Return the library's text; errors as of :func:`load_three_js`."""
    require_packages("a page that shows the motion", "trimesh")
    headline = "three.js cannot be taken from the installed trimesh:"
    remedy = "install a version of trimesh that mb2fmu was tested with (requirements.lock)"
    where = f"trimesh {version('trimesh')}"
    try:
        with zipfile.ZipFile(_find_trimesh_folder() / _TEMPLATE) as archive:
            page = archive.read(_MEMBER).decode()
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ToolError(headline, [Fault(f"it has no {_TEMPLATE} with {_MEMBER}: {error}", where, remedy)]) from error
    begin = _LIBRARY_START_PATTERN.search(page)
    end = _LIBRARY_END_PATTERN.search(page, begin.end()) if begin else None
    if begin is None or end is None:
        raise ToolError(headline, [Fault("its viewer does not hold three.js in one piece", where, remedy)])
    return page[begin.start() : end.end()]


def _find_trimesh_folder() -> Path:
    """Return the folder of trimesh, found without importing it, which takes a second."""
    package = find_spec("trimesh")
    if package is None or package.origin is None:
        raise FileNotFoundError("trimesh is not installed")
    return Path(package.origin).parent
