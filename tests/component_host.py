"""A host of FMI-LS-WASM components: wasmtime, with the callbacks that the draft's worlds import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import wasmtime
from wasmtime import component as wc

PACKAGE = "fmi:fmi3/{}@3.0.0"


LIMIT = 6 << 20
"""Bytes that a component's memory may grow to."""
ENGINE = wasmtime.Engine()


@cache
def compiled(content: bytes) -> wc.Component:
    """Machine code, made once."""
    return wc.Component(ENGINE, content)


class Component:
    """A loaded component; what it logs is kept.

    Args:
        content: The file.
        answer: To each intermediate update: is an early return asked for, and at which time.
    """

    def __init__(self, content: bytes, answer: Callable[..., tuple[bool, float]] = lambda *_: (False, 0.0)) -> None:
        self.log: list[tuple[str, str, str, str]] = []
        self.store = wasmtime.Store(ENGINE)
        self.store.set_limits(memory_size=LIMIT)
        linker = wc.Linker(ENGINE)
        with linker.root() as root:
            with root.add_instance(PACKAGE.format("callbacks")) as callbacks:
                callbacks.add_func("log-message", lambda _, *said: self.log.append(said))
                for name in ("clock-update", "lock-preemption", "unlock-preemption"):
                    callbacks.add_func(name, lambda _: None)
            with root.add_instance(PACKAGE.format("intermediate-update-callbacks")) as updates:
                updates.add_func("intermediate-update", lambda _, *given: answer(*given))
        self.instance = linker.instantiate(self.store, compiled(content))

    def call(self, interface: str, name: str, *arguments: Any) -> Any:
        """Calls a function of an interface."""
        where = self.instance.get_export_index(self.store, PACKAGE.format(interface))
        index = self.instance.get_export_index(self.store, name, where)
        function = self.instance.get_func(self.store, index)
        assert function is not None, (interface, name)
        return function(self.store, *arguments)

    def instantiate(self, kind: str, token: str, early: bool = False) -> Instance:
        """An instance of ``co-simulation`` or ``model-exchange``; ``handle`` is None where the FMU refuses."""
        visible, logging, event_mode = False, True, False
        more = (event_mode, early, []) if kind == "co-simulation" else ()
        name = f"[static]{kind}-instance.instantiate-{kind}"
        return Instance(self, kind, self.call(kind, name, "first", token, "", visible, logging, *more))


class Instance:
    """One instance; methods by their names in the draft."""

    def __init__(self, component: Component, kind: str, handle: Any) -> None:
        self.component, self.kind, self.handle = component, kind, handle

    def __call__(self, name: str, *arguments: Any) -> Any:
        return self.component.call(self.kind, f"[method]{self.kind}-instance.{name}", self.handle, *arguments)

    def begin(self, settings: dict[int, float], stop: float | None = None) -> None:
        """Through initialization, with values that are set before it."""
        assert self("set-float64", list(settings), list(settings.values())) == "ok"
        assert self("enter-initialization-mode", 1e-9, 0.0, stop) == "ok"
        assert self("exit-initialization-mode") == "ok"

    def step(self, start: float, size: float) -> Any:
        """A communication step, which is not rolled back."""
        rolled_back = False
        return self("do-step", start, size, rolled_back)

    def values(self, references: Sequence[int]) -> list[float]:
        """Values of reals."""
        return self("get-float64", list(references))

    def free(self) -> None:
        """Ends the instance, as a host does that drops the resource."""
        self.handle.drop(self.component.store)
