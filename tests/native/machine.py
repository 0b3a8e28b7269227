"""The state machines of FMI 2.0.5 and 3.0.2, as a test wants to see them: written from the standards' tables.

A row of a table says in which states a function may be called. Columns, one letter each:

    I instantiated   N initialization mode   E event mode   C continuous-time mode   S between steps (stepComplete, Step
    Mode)   F after a discarded step (FMI 2)   T terminated   X error (in FMI 3 a part of Terminated)

FMI 2: sections 3.2.3 and 4.2.4; FMI 3: sections 2.3, 3.2.1 and 4.2.1. Three rows allow more than the standard, on
purpose: FMI 2's DoStep, SetReal and SetRealInputDerivatives in F, because a discarded step leaves everything as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from native.fmi import CS, ME

COMMON2 = {
    "SetDebugLogging": "INECSFTX",
    "SetupExperiment": "I",
    "EnterInitializationMode": "I",
    "ExitInitializationMode": "N",
    "Terminate": "ECSF",
    "Reset": "INECSFTX",
    "GetReal": "NECSFTX",
    "GetInteger": "NECSFTX",
    "GetBoolean": "NECSFTX",
    "GetString": "NECSFTX",
    "SetReal": "INECSF",
    "SetInteger": "INESF",
    "SetBoolean": "INESF",
    "SetString": "INESF",
    "GetFMUstate": "INECSFTX",
    "SetFMUstate": "INECSFTX",
    "SerializeFMUstate": "INECSFTX",
    "DeSerializeFMUstate": "INECSFTX",
    "GetDirectionalDerivative": "NECSFTX",
}
ME2 = {
    "EnterEventMode": "EC",
    "NewDiscreteStates": "E",
    "EnterContinuousTimeMode": "E",
    "CompletedIntegratorStep": "C",
    "SetTime": "C",
    "SetContinuousStates": "C",
    "GetDerivatives": "NECTX",
    "GetEventIndicators": "NECTX",
    "GetContinuousStates": "NECTX",
    "GetNominalsOfContinuousStates": "INECTX",
}
CS2 = {
    "SetRealInputDerivatives": "INSF",
    "GetRealOutputDerivatives": "SFTX",
    "DoStep": "SF",
    "CancelStep": "",
    "GetStatus": "SFT",
    "GetRealStatus": "SFT",
    "GetBooleanStatus": "SFT",
    "GetIntegerStatus": "SFT",
    "GetStringStatus": "SFT",
}
COMMON3 = {
    "SetDebugLogging": "INECSTX",
    "EnterInitializationMode": "I",
    "ExitInitializationMode": "N",
    "Terminate": "ECS",
    "Reset": "INECSTX",
    "GetFloat64": "INECSTX",
    "GetInt64": "INECSTX",
    "GetBoolean": "INECSTX",
    "GetBinary": "INECSTX",
    "SetFloat64": "INECS",
    "SetInt64": "INES",
    "SetUInt8": "INES",
    "SetString": "INES",
    "GetFMUState": "INECSTX",
    "SetFMUState": "INECSTX",
    "SerializeFMUState": "INECSTX",
    "DeserializeFMUState": "INECSTX",
    "GetDirectionalDerivative": "NECSTX",
    "GetAdjointDerivative": "NECSTX",
    "EnterConfigurationMode": "",
    "ExitConfigurationMode": "",
}
ME3 = {
    "EnterEventMode": "C",
    "UpdateDiscreteStates": "E",
    "EvaluateDiscreteStates": "E",
    "EnterContinuousTimeMode": "E",
    "CompletedIntegratorStep": "C",
    "SetTime": "C",
    "SetContinuousStates": "C",
    "GetContinuousStateDerivatives": "NECTX",
    "GetEventIndicators": "NECTX",
    "GetContinuousStates": "NECTX",
    "GetNominalsOfContinuousStates": "NECTX",
    "GetNumberOfEventIndicators": "INECTX",
    "GetNumberOfContinuousStates": "INECTX",
}
CS3 = {"EnterStepMode": "", "GetOutputDerivatives": "STX", "DoStep": "S"}

NEXT = {
    ("EnterInitializationMode", ME): "N",
    ("EnterInitializationMode", CS): "N",
    ("ExitInitializationMode", ME): "E",
    ("ExitInitializationMode", CS): "S",
    ("Terminate", ME): "T",
    ("Terminate", CS): "T",
    ("Reset", ME): "I",
    ("Reset", CS): "I",
    ("EnterEventMode", ME): "E",
    ("EnterContinuousTimeMode", ME): "C",
    ("DoStep", CS): "S",
}
"""Where a call that succeeds leads; all others stay. Setting a state leads to where it was saved."""


@dataclass
class Machine:
    """Which calls are legal, and where they lead.

    Attributes:
        fmi: 2 or 3.
        kind: ME or CS.
        state: A letter.
        experiment: FMI 2: the experiment was set up.
    """

    fmi: int
    kind: int
    state: str = "I"
    experiment: bool = False

    @property
    def table(self) -> dict[str, str]:
        """Rows of this version that can be called at all; those of the other kind have no columns."""
        common, exchange, cosimulation = (COMMON2, ME2, CS2) if self.fmi == 2 else (COMMON3, ME3, CS3)
        own, others = (exchange, cosimulation) if self.kind == ME else (cosimulation, exchange)
        return {**common, **dict.fromkeys(others, ""), **own}

    def legal(self, function: str) -> bool:
        """Whether it may be called now."""
        if self.fmi == 2 and function == "EnterInitializationMode" and not self.experiment:
            return False
        return self.state in self.table[function]

    def succeed(self, function: str) -> None:
        """After a legal call."""
        if function == "SetupExperiment":
            self.experiment = True
        if function == "Reset":
            self.experiment = False
        self.state = NEXT.get((function, self.kind), self.state)

    def fail(self) -> None:
        """After Error."""
        self.state = "X"
