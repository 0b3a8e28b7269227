"""The laws of FmuInterface: each one broken is a fault, all of them at once."""

import dataclasses

import pytest
from golden.handwritten import pendulum_interface

from mb2fmu.errors import InterfaceError
from mb2fmu.fmu.interface.fmu_interface import DefaultExperiment, FmuInterface, FmuSolverSettings, VariableDependency


def changed(name, /, **changes):
    """The pendulum's interface with one variable changed."""
    sound = pendulum_interface()
    variables = tuple(dataclasses.replace(v, **changes) if v.name == name else v for v in sound.variables)
    return {"variables": variables}


def test_a_sound_interface_is_accepted():
    interface = pendulum_interface()
    assert [variable.name for variable in interface.variables_from_sources("state")] == ["q", "u"]
    assert interface.named("tip.x").unit == "m"
    with pytest.raises(KeyError):
        interface.named("nobody")


@pytest.mark.parametrize(
    "name", ["a", "_a1.b[3].c[1,2]", "der(a.b)", "der(a[1],2)", "'a strange name!'.x", r"'it\'s'", "'(+)'[1]"]
)
def test_structured_names_are_accepted(name):
    assert list(dataclasses.replace(pendulum_interface().named("tip.x"), name=name).faults()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed("q", value_reference=8), "value reference 8"),
        (changed("q", name="u"), "have this name"),
        (changed("tip.x", name="tip x"), "not a structured FMI name"),
        (changed("tip.x", name="1st"), "not a structured FMI name"),
        (changed("tip.x", name="tip."), "not a structured FMI name"),
        (changed("q", nominal=0.0), "not positive"),
        (changed("q", nominal=float("inf")), "not a finite number"),
        (changed("q", start=11.0), "outside of"),
        (changed("q", start=float("nan")), "not a finite number"),
        (changed("m", minimum=2.0, maximum=1.0), "above max"),
        (changed("q", start=None), "with a start value"),
        (changed("tip.x", start=1.0), "without a start value"),
        (changed("tip.x", initial="exact"), "with a start value"),
        (changed("m", initial="calculated", start=None), "do not go together"),
        (changed("tau", variability="fixed"), "do not go together"),
        (changed("q", unit="furlong"), "'furlong' is not declared"),
        (changed("q", display_unit="rpm"), "'rpm' is not declared"),
        (changed("der(q)", derivative_of="tip.x"), "which is no state"),
        (changed("der(q)", derivative_of="u"), "variables are its derivative"),
        (changed("load", dependencies=(VariableDependency("tip.x"),)), "depends on tip.x"),
        (changed("time", causality="local", initial="calculated"), "0 independent variables"),
        (changed("q", description="two\nlines"), "line break or control character"),
        (changed("q", description="\x00"), "line break or control character"),
        ({"description": "two\nlines"}, "line break or control character"),
        (changed("tip.x", name="'a\nb'"), "not a structured FMI name"),
        (changed("tip.x", name="'ä'"), "not a structured FMI name"),
        ({"token": "no-uuid"}, "not a UUID"),
        ({"model_identifier": "a-b"}, "not a C identifier"),
        ({"experiment": DefaultExperiment(1.0, 1.0, 0.1, 1e-6)}, "make no experiment"),
        ({"experiment": DefaultExperiment(0.0, 1.0, 0.1, 0.0)}, "make no experiment"),
        ({"solver": FmuSolverSettings("fixed", 1e-6, -1.0)}, "is not positive"),
    ],
)
def test_broken_laws_are_faults(changes, message):
    sound = pendulum_interface()
    with pytest.raises(InterfaceError) as caught:
        dataclasses.replace(sound, **changes)
    assert message in str(caught.value)


def test_all_faults_are_reported_at_once():
    sound = pendulum_interface()
    variables = tuple(dataclasses.replace(v, unit="furlong", nominal=-1.0) for v in sound.variables)
    with pytest.raises(InterfaceError) as caught:
        FmuInterface(**{f.name: getattr(sound, f.name) for f in dataclasses.fields(sound)} | {"variables": variables})
    assert len(caught.value.faults) == 2 * len(variables)
