"""Elements of arrays, read and set as if each had a value reference of its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.fmu.runner.fmi3_array_elements import encode_array_element_reference, locate_array_elements

SIZES = {100: 3, 200: 1, 300: 4}
KNOWN = [
    *range(6),
    *(encode_array_element_reference(array, place) for array, size in SIZES.items() for place in range(size)),
]
REFERENCES = st.permutations(KNOWN).flatmap(lambda known: st.integers(0, len(KNOWN)).map(lambda n: known[:n]))


@given(REFERENCES)
def test_what_is_joined_is_picked_and_nothing_else_changes(references: list[int]) -> None:
    found = locate_array_elements(references, SIZES)
    if found is None:
        assert all(reference < 100 for reference in references)
        return
    assert found.size == sum(SIZES.get(each, 1) for each in found.references)
    others = [-1.0 - k for k in range(found.size)]
    values = [float(k) for k in range(len(references))]
    joined = found.merge_variable_values(values, others)
    assert found.select_elements(joined) == values
    assert sum(a != b for a, b in zip(joined, others, strict=True)) == len(references)


@given(REFERENCES)
def test_each_array_is_named_once_and_scalars_keep_their_order(references: list[int]) -> None:
    found = locate_array_elements(references, SIZES)
    if found is not None:
        assert len(set(found.references)) == len(found.references)
        assert [each for each in found.references if each < 100] == [each for each in references if each < 100]
        assert {each for each in found.references if each >= 100} == {each & 0xFFFFFFFF for each in references} - {
            each for each in references if each < 100
        }
