"""The coefficients of the C integrator against SciPy's."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest
from scipy.integrate._ivp import dop853_coefficients as scipy_coefficients

STAGES = 12
EXPECTED = {
    "A": scipy_coefficients.A[:STAGES, :STAGES],
    "B": scipy_coefficients.B,
    "C": scipy_coefficients.C[:STAGES],
    "E3": scipy_coefficients.E3,
    "E5": scipy_coefficients.E5,
    "A_extra": scipy_coefficients.A[STAGES + 1 :],
    "C_extra": scipy_coefficients.C[STAGES + 1 :],
    "D": scipy_coefficients.D,
}


def read_table(name):
    """Return one field of the table in the header; C fills rows with zeros, and so does this."""
    text = (resources.files("mb2fmu.validation.compiled") / "sources" / "dop853_coefficients.h").read_text()
    body = re.search(rf"\.{name} = \{{(.*?)\n    \}},", text, re.DOTALL).group(1)
    rows = re.findall(r"\{(.*?)\}", body, re.DOTALL) or [body]
    numbers = [[float(word) for word in re.findall(r"[-+.e\d]+", row)] for row in rows]
    table = np.zeros(np.atleast_2d(EXPECTED[name]).shape)
    for row, values in zip(table, numbers, strict=True):
        row[: len(values)] = values
    return table.reshape(EXPECTED[name].shape)


@pytest.mark.parametrize("name", EXPECTED)
def test_coefficients_are_those_of_scipy(name):
    assert read_table(name).tolist() == EXPECTED[name].tolist()
