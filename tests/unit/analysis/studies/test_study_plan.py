"""Plans: every fault at once, cases as the methods say, indices against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.analysis.studies.resolved_study_plan import VariedQuantityValues, sample_study_cases
from mb2fmu.analysis.studies.sensitivity_indices import estimate_sobol_indices
from mb2fmu.analysis.studies.study_plan import read_study_plan
from mb2fmu.errors import AnalysisError

WRONG = {
    "fmuu": "a.fmu",
    "kind": "xx",
    "stop": -1.0,
    "cases": {"method": "sobol", "count": 100, "sed": 3},
    "vary": {"m": 3.0, "k": {"from": 1.0}, "l": {"values": [1.0]}},
    "results": {"top": {"take": "largest"}, "low": {"of": "x", "take": "lowest"}},
    "set": {"g": [1.0]},
}


def test_every_fault_of_a_plan_is_named_with_what_to_do() -> None:
    with pytest.raises(AnalysisError) as caught:
        read_study_plan(WRONG)
    message = str(caught.value)
    for part in (
        "fmuu means nothing", "neither model nor fmu", "'xx' is no kind", "-1.0 is no positive", "sed means nothing",
        "100 is no power of two", "write 64 or 128", "3.0 is one value", "vary.k: does not say which values",
        "sobol draws between bounds", "results.top: does not say of which", "'lowest' is no take",
        "g: [1.0] is no number",
    ):  # fmt: skip
        assert part in message
    assert all(fault.remedy for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("cases", "begins"),
    [({"method": "random", "count": 4}, "'random' is"), ({"method": "latin-hypercube", "count": -4}, "-4 is")],
)
def test_nothing_is_said_of_what_follows_from_a_fault(cases: dict, begins: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        read_study_plan({"fmu": "a.fmu", "arguments": {"n": 3}, "cases": cases, "vary": {"m": {"from": 1, "to": 2}}})
    assert [each.what.partition(" no ")[0] for each in caught.value.faults] == ["an FMU has", begins]


@given(st.integers(1, 5), st.integers(2, 4))
def test_a_grid_has_every_combination_once(n: int, d: int) -> None:
    axes = [
        VariedQuantityValues("values", tuple(float(k) for k in range(n))),
        *[VariedQuantityValues("uniform", (0.0, 1.0), n + 1)] * (d - 1),
    ]
    cases = sample_study_cases("grid", axes, 0, 0)
    assert cases.shape == (n * (n + 1) ** (d - 1), d)
    assert len(np.unique(cases, axis=0)) == len(cases)


@given(st.integers(1, 40), st.integers(0, 2**31))
def test_a_latin_hypercube_has_one_case_in_each_row_of_each_axis(n: int, seed: int) -> None:
    cases = sample_study_cases(
        "latin-hypercube",
        [VariedQuantityValues("uniform", (2.0, 3.0)), VariedQuantityValues("log", (1e-3, 1e3))],
        n,
        seed,
    )
    cells = np.column_stack([(cases[:, 0] - 2.0) * n, (np.log10(cases[:, 1]) + 3.0) / 6.0 * n])
    for column in np.floor(cells + 1e-9).astype(int).T:
        assert sorted(column) == list(range(n))


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**31))
def test_a_latin_hypercube_has_scipys_numbers(n: int, d: int, seed: int) -> None:
    from scipy.stats import qmc

    axes = [VariedQuantityValues("uniform", (0.0, 1.0))] * d
    scipys = qmc.LatinHypercube(d, rng=np.random.default_rng(seed)).random(n)
    assert sample_study_cases("latin-hypercube", axes, n, seed).tobytes() == np.ascontiguousarray(scipys).tobytes()


def test_normal_values_have_their_mean_and_deviation() -> None:
    (values,) = sample_study_cases("sobol", [VariedQuantityValues("normal", (5.0, 0.1))], 4096, 1).T
    assert values.mean() == pytest.approx(5.0, abs=1e-3)
    assert values.std() == pytest.approx(0.1, rel=1e-2)


def test_indices_are_the_closed_form_of_ishigamis_function_and_scipys() -> None:
    """Ishigami, Homma (1990): a = 7, b = 0.1."""
    from scipy.stats import sobol_indices, uniform

    a, b, n = 7.0, 0.1, 4096
    cases = sample_study_cases("sobol", [VariedQuantityValues("uniform", (-np.pi, np.pi))] * 3, n, 2, indices=True)

    def f(x: np.ndarray) -> np.ndarray:
        return np.sin(x[0]) + a * np.sin(x[1]) ** 2 + b * x[2] ** 4 * np.sin(x[0])

    values = f(cases.T)
    found = estimate_sobol_indices(values, 3)
    variance = a**2 / 8 + b * np.pi**4 / 5 + b**2 * np.pi**8 / 18 + 0.5
    one, two = 0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8
    both = b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    np.testing.assert_allclose(found.first, np.array([one, two, 0.0]) / variance, atol=0.02)
    np.testing.assert_allclose(found.total, np.array([one + both, two, both]) / variance, atol=0.02)
    for estimate, interval in ((found.first, found.first_interval), (found.total, found.total_interval)):
        assert ((interval[:, 0] <= estimate) & (estimate <= interval[:, 1])).all()
    theirs = sobol_indices(func=f, n=n, dists=[uniform(-np.pi, 2 * np.pi)] * 3, rng=1)
    np.testing.assert_allclose(found.total, theirs.total_order, atol=0.02)


def test_rows_without_results_are_left_out_of_the_indices() -> None:
    values = sample_study_cases("sobol", [VariedQuantityValues("uniform", (0.0, 1.0))] * 2, 256, 1, indices=True)[:, 0]
    lost = values.copy()
    lost[[3, 300, 900]] = np.nan
    assert estimate_sobol_indices(values, 2).used == 256
    found = estimate_sobol_indices(lost, 2)
    assert found.used == 256 - len({3, 300 % 256, 900 % 256})
    np.testing.assert_allclose(found.total, [1.0, 0.0], atol=0.1)
