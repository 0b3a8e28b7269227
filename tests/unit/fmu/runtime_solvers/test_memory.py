"""Memory: the same calls give the same bits; saved and loaded it goes on; invalidated it forgets what is void."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_models.zoo import ADAPTIVE, Answer, Kind, Library, Solver, Unit, available, built
from native_models.zoo_solutions import CASES

WAY = [0.1, 0.03, 1e-7, 2.0, 0.4, 0.4, 0.4, 1e-3]


def walked(unit, x, t=0.0, way=WAY):
    trace = []
    for h in way:
        x = unit.step(t, h, x)
        t += h
        trace.append([*x, unit.lasting()])
    return trace


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("name", CASES)
def test_same_calls_same_bits(library, name, solver):
    """Again in a new FMU, and after a reset."""
    case = CASES[name]
    unit = case.unit(library, solver, fixed_step=0.02)
    first = walked(unit, case.exact(0.0))
    fresh = unit.memory.raw
    unit.reset()
    assert walked(unit, case.exact(0.0)) == first
    assert unit.memory.raw == fresh
    assert walked(case.unit(library, solver, fixed_step=0.02), case.exact(0.0)) == first


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
def test_two_compilers_same_bits(zig_library, tmp_path, optimization):
    """Whether they optimize or not."""
    if not available("gcc"):
        pytest.skip("there is no second compiler here")
    libraries = zig_library, Library(built("gcc", tmp_path, optimization))
    for solver in Solver:
        for name in ("forced", "kepler", "driven by a ramp"):
            case = CASES[name]
            first, second = (
                walked(case.unit(library, solver, fixed_step=0.02), case.exact(0.0)) for library in libraries
            )
            assert first == second


@settings(max_examples=30, deadline=None)
@given(
    solver=st.sampled_from(Solver),
    name=st.sampled_from(sorted(CASES)),
    way=st.lists(st.floats(1e-6, 0.3), min_size=2, max_size=6),
    cut=st.integers(0, 5),
)
def test_saved_memory_goes_on_elsewhere(zig_library, solver, name, way, cut):
    case, cut = CASES[name], min(cut, len(way))
    whole = walked(case.unit(zig_library, solver, fixed_step=0.05), case.exact(0.0), way=way)
    unit = case.unit(zig_library, solver, fixed_step=0.05)
    begun = walked(unit, case.exact(0.0), way=way[:cut])
    x = begun[-1][:4] if begun else case.exact(0.0)
    other = case.unit(zig_library, 1, tolerance=1e-3)
    assert other.load(*unit.save()) == 0
    assert begun + walked(other, x, t=sum(way[:cut], 0.0), way=way[cut:]) == whole


def test_memory_that_nothing_can_have_saved_is_refused(library):
    unit = CASES["pendulum"].unit(library, Solver.EXPLICIT)
    unit.step(0.0, 0.5, [2.0, 0.0, 0.0, 0.0])
    numbers, integers = unit.save()
    before = unit.lasting()
    for i in range(len(numbers)):
        for bad in (math.nan, math.inf, *([-1.0] if i < 5 else [])):
            assert unit.load([*numbers[:i], bad, *numbers[i + 1 :]], integers) == 1
    assert unit.load([1.0, *numbers[1:]], integers) == 1
    for wrong in ([0, 1], [len(Solver) + 1, 1], [1, 2], [1, -1]):
        assert unit.load(numbers, wrong) == 1
    assert unit.lasting() == before


@pytest.mark.parametrize("solver", Solver)
def test_a_changed_input_counts_from_the_next_step_on(library, solver):
    """u' = r u with an input that is held and changes at communication points."""
    unit = Unit(library, solver, Kind.DRIVEN, r0=0.5, tolerance=1e-9, fixed_step=1e-4)
    x, exponent = [0.0, 0.0, 1.0, 0.0], 0.0
    for i, r in enumerate([0.5, -1.0, 2.0, 0.0, 0.3]):
        unit.set_input(r)
        unit.invalidate()
        assert unit.dense(0.2 * i) is None
        x = unit.step(0.2 * i, 0.2, x)
        exponent += 0.2 * r
        error = 2e-4 if solver == Solver.EULER else 1e-7
        assert x[2] == pytest.approx(math.exp(exponent), rel=error)


def test_invalidating_keeps_the_step_size_only(library):
    unit = CASES["kepler"].unit(library, Solver.EXPLICIT)
    unit.step(0.0, 2.0, CASES["kepler"].exact(0.0))
    numbers, integers = unit.save()
    assert integers == [1, 1]
    assert all(value > 0.0 for value in (numbers[2], numbers[3], numbers[4]))
    unit.invalidate()
    assert unit.save() == ([*numbers[:3], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1, 0])


@pytest.mark.parametrize("solver", Solver)
def test_the_hook_sees_every_accepted_step(library, solver):
    """In order, the last at the communication point, with the interpolant of the step that ends there."""
    case, seen = CASES["pendulum"], []

    def hook(t, x, until):
        assert until[0] == 3.5
        begin = seen[-1][0] if seen else 0.5
        middle = unit.dense(0.5 * (begin + t))
        assert middle is not None
        assert unit.dense(t) == pytest.approx(x, rel=1e-15, abs=1e-15)
        seen.append((t, x, 0.5 * (begin + t), middle))
        return Answer.GO_ON

    unit = case.unit(library, solver, tolerance=1e-7, fixed_step=0.01, hook=hook)
    plain = case.unit(library, solver, tolerance=1e-7, fixed_step=0.01)
    start = case.exact(0.5)
    assert unit.step(0.5, 3.0, start) == plain.step(0.5, 3.0, start) == seen[-1][1]
    times = [t for t, *_ in seen]
    assert times == sorted(set(times))
    assert (len(times), times[-1], unit.problem.reached) == (unit.problem.steps, 3.5, 3.5)
    for t, x, between, middle in seen:
        error = 0.1 if solver == Solver.EULER else 1e-4
        assert math.dist(x, case.exact(t)) < error
        assert math.dist(middle, case.exact(between)) < error


@pytest.mark.parametrize("solver", Solver)
def test_early_return_at_once(library, solver):
    case = CASES["pendulum"]
    unit = case.unit(library, solver, fixed_step=0.25, hook=lambda t, _x, _until: Answer.STOP * (t > 0.4))
    x = unit.step(0.0, 3.0, case.exact(0.0))
    assert unit.problem.reached < 3.0
    assert math.dist(x, case.exact(unit.problem.reached)) < (0.5 if solver == Solver.EULER else 1e-2)
    unit.step(unit.problem.reached, 0.1, x)


@pytest.mark.parametrize("solver", Solver)
def test_early_return_at_a_later_time(library, solver):
    """Integration ends at the asked time exactly; one that is not later than the present means now."""
    case = CASES["pendulum"]
    for asked in (1.9, 0.0):

        def hook(t, _x, until, asked=asked):
            if t > 0.3:
                until[0] = asked
            return Answer.GO_ON

        unit = case.unit(library, solver, tolerance=1e-8, fixed_step=0.0007, hook=hook)
        x = unit.step(0.0, 3.0, case.exact(0.0))
        reached = unit.problem.reached
        assert reached == 1.9 if asked else 0.3 < reached < 1.9
        assert math.dist(x, case.exact(reached)) < (1e-2 if solver == Solver.EULER else 1e-5)


@pytest.mark.parametrize("solver", Solver)
def test_inputs_changed_in_the_hook(library, solver):
    """u' = r u: r becomes -1 at the first accepted step after 0.5 s."""
    changed = []

    def hook(t, _x, _until):
        if t >= 0.5 and not changed:
            changed.append(t)
            unit.inputs[0][0] = -1.0
            return Answer.INPUTS_CHANGED
        return Answer.GO_ON

    unit = Unit(library, solver, Kind.DRIVEN, r0=1.0, tolerance=1e-9, fixed_step=1e-4, hook=hook)
    x = unit.step(0.0, 2.0, [0.0, 0.0, 1.0, 0.0])
    wanted = math.exp(changed[0] - (2.0 - changed[0]))
    assert x[2] == pytest.approx(wanted, rel=1e-3 if solver == Solver.EULER else 1e-7)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_slopes_of_outputs(library, solver):
    """Against differences along the motion: outputs q1^2 and q1 u1 + t r of a driven state, r moving."""
    case = CASES["pendulum"]
    unit = case.unit(library, solver, tolerance=1e-11)
    unit.set_input(0.7, -0.3)
    unit.problem.t0 = 0.2

    def outputs(t):
        q, _, u, _ = case.exact(t)
        return [q * q, q * u + t * (0.7 - 0.3 * (t - 0.2))]

    before = unit.memory.raw[: unit.library.c.zoo_memory_size()]
    slopes = unit.output_slope(1.1, case.exact(1.1))
    h = 1e-4
    differences = [(b - a) / (2 * h) for a, b in zip(outputs(1.1 - h), outputs(1.1 + h), strict=True)]
    assert slopes[4:] == pytest.approx(differences, rel=1e-7)
    accelerations = [(b - a) / (2 * h) for a, b in zip(case.exact(1.1 - h), case.exact(1.1 + h), strict=True)]
    q, _, u, _ = case.exact(1.1)
    assert slopes[:4] == pytest.approx([accelerations[2], 0.0, -math.cos(q) * u, 0.0], rel=1e-7, abs=1e-12)
    assert unit.lasting() == before
