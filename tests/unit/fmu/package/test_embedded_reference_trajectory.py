"""The reference trajectory in the unit, as fmi-ls-ref 1.0.0-beta.1 wants it."""

import csv
import io

import pytest
from golden.handwritten import native_interface
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mb2fmu.errors import PackageError
from mb2fmu.fmu.package import EmbeddedTrajectoryTable, form_embedded_reference_files

FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
MANIFEST = "{http://fmi-standard.org/fmi-ls-manifest}"
TABLE = EmbeddedTrajectoryTable(["q"], [0.0, 0.1], [[0.5], [0.4]])


def test_the_manifest_lists_what_there_is():
    stimuli = EmbeddedTrajectoryTable(["tau"], [0.0], [[1.0]])
    files = form_embedded_reference_files(native_interface("3"), TABLE, stimuli=stimuli, origin="an independent way")
    assert set(files) == {
        f"{FOLDER}/{name}" for name in ("fmi-ls-manifest.xml", "reference.csv", "experiments.xml", "stimuli.csv")
    }
    root = etree.fromstring(files[f"{FOLDER}/fmi-ls-manifest.xml"])
    assert root.tag == "fmiReferences"
    assert root.get(f"{MANIFEST}fmi-ls-name") == "org.fmi-standard.fmi-ls-ref"
    assert root.get(f"{MANIFEST}fmi-ls-version") == "1.0.0-beta.1"
    fixed = "Layered Standard providing information on related files included in an FMU."  # by the standard's schema
    assert root.get(f"{MANIFEST}fmi-ls-description") == fixed
    related = {item.get("role"): (item.get("type"), item.get("source")) for item in root}
    assert related == {
        "result": ("text/csv", "reference.csv"),
        "report": ("text/html", "../../documentation/index.html"),
        "experiment/validation": ("text/xml", "experiments.xml"),
    }
    assert "an independent way" in root[0].get("description")


def test_the_experiment_is_the_default_one():
    interface = native_interface("2")
    stimuli = EmbeddedTrajectoryTable(["tau"], [0.0], [[1.0]])
    files = form_embedded_reference_files(interface, TABLE, stimuli=stimuli, origin="x")
    (experiment,) = etree.fromstring(files[f"{FOLDER}/experiments.xml"])
    run = interface.experiment
    found = [float(experiment.get(key)) for key in ("startTime", "stopTime", "stepSize", "tolerance")]
    assert found == [run.start, run.stop, run.step, run.tolerance]
    assert [(item.tag, item.get("source")) for item in experiment] == [
        ("Stimuli", "stimuli.csv"),
        ("References", "reference.csv"),
    ]


def test_without_stimuli_and_report_none_are_named():
    files = form_embedded_reference_files(native_interface("3"), TABLE, origin="x", report=False)
    assert f"{FOLDER}/stimuli.csv" not in set(files)
    roles = [item.get("role") for item in etree.fromstring(files[f"{FOLDER}/fmi-ls-manifest.xml"])]
    assert roles == ["result", "experiment/validation"]
    assert [item.tag for item in etree.fromstring(files[f"{FOLDER}/experiments.xml"])[0]] == ["References"]


def test_held_stimuli_are_right_where_they_are_interpolated():
    interface = native_interface("3")
    stop = interface.experiment.stop
    stimuli = EmbeddedTrajectoryTable(["tau"], [0.0, 0.25 * stop, 0.5 * stop], [[1.0], [1.0], [-2.0]])
    files = form_embedded_reference_files(interface, TABLE, stimuli=stimuli, origin="x")
    _, *rows = csv.reader(io.StringIO(files[f"{FOLDER}/stimuli.csv"].decode()))
    expected = [(0.0, 1.0), (0.5 * stop, 1.0), (0.5 * stop, -2.0), (stop, -2.0)]
    assert [tuple(map(float, row)) for row in rows] == expected


@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1, max_size=5)
)
def test_numbers_and_names_read_back(rows):
    table = EmbeddedTrajectoryTable(["a[1,2]", "'x \"y\"'"], [float(i) / 3.0 for i in range(len(rows))], rows)
    head, *lines = csv.reader(io.StringIO(table.csv().decode()))
    assert head == ["time", *table.names]
    assert [[float(value).hex() for value in line] for line in lines] == [
        [value.hex() for value in (time, *row)] for time, row in zip(table.time, rows, strict=True)
    ]


def test_a_table_of_another_fmu_is_refused():
    with pytest.raises(PackageError) as caught:
        form_embedded_reference_files(
            native_interface("3"),
            EmbeddedTrajectoryTable(["nobody"], [0.0], [[0.0]]),
            stimuli=EmbeddedTrajectoryTable(["q"], [0.0], [[0.0]]),
            origin="x",
        )
    assert "nobody: is no variable" in str(caught.value)
    assert "q: is no input" in str(caught.value)
