"""Measure x' of many instances in JAX: on this CPU beside the compiled batch, or on a machine with a GPU.

``write FOLDER`` needs mb2fmu: it writes the module of each model, random states, and what the compiled batch makes of
them. ``measure FOLDER`` needs JAX and NumPy alone, so that a machine with a GPU and nothing else can run it. Times are
of the processor on a CPU, of the clock on a GPU; each the best of some calls.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
MODELS = ("cart_pole", "robot_arm", "four_bar", "chain")
LINKS, ROLLOUT, STEP, CALLS = 100, 100, 1e-3, 10


def main() -> None:
    """Read the arguments, write or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", type=int, default=4096, help="number of instances (write)")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    arguments = parser.parse_args()
    for name in arguments.models:
        if arguments.action == "write":
            write_model(name, arguments.folder, arguments.states)
        else:
            measure_model(name, arguments.folder)


def load_module(path: Path) -> ModuleType:
    """Return a file of Python as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_model(name: str, folder: Path, states: int) -> None:
    """Write the module of a model, and a file of NumPy's with states, x' of the compiled batch, and its time."""
    from mb2fmu import pipeline

    path = ROOT / "models" / f"{name}.py"
    derivation = pipeline.derive(load_module(path).chain(LINKS) if name == "chain" else path)
    (module,) = pipeline.export_target_source_code(derivation, "jax", folder)
    f = pipeline.right_hand_side(derivation)
    compiled = f.compile()
    x = f.x0 + 0.05 * np.random.default_rng(1).standard_normal((states, len(f.x0)))
    seconds = find_shortest(lambda: compiled(0.3, x), time.process_time)
    np.savez_compressed(folder / f"{name}.npz", x=x, dx=compiled(0.3, x), seconds=seconds)
    (folder / f"{name}.json").write_text(json.dumps({"module": module.name}), encoding="utf-8")
    print(f"{name}: {len(f.x0)} states, {states} instances; compiled batch {1e6 * seconds / states:.3f} us each")


def find_shortest(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shortest time of some calls in s, after a first one."""
    call()
    times = []
    for _ in range(CALLS):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def measure_model(name: str, folder: Path) -> None:
    """Print compile times, times per instance and errors on each device, in double and single precision."""
    import jax

    jax.config.update("jax_enable_x64", val=True)
    module = load_module(folder / json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["module"])
    data = np.load(folder / f"{name}.npz")
    devices = {device.platform: device for device in (*jax.devices(), *jax.devices("cpu"))}
    print(f"{name}: {len(data['x'])} instances; compiled batch {1e6 * data['seconds'] / len(data['x']):.3f} us each")
    for device in devices.values():
        for dtype in ("float64", "float32"):
            with jax.default_device(device):
                _measure_on_device(module, data, device, dtype)


def _measure_on_device(module: ModuleType, data: Any, device: Any, dtype: str) -> None:
    """Print a line for a device and a type."""
    import jax
    import jax.numpy as jnp

    clock = time.process_time if device.platform == "cpu" else time.perf_counter
    x = jax.device_put(jnp.asarray(data["x"], dtype), device)
    begin = time.perf_counter()
    rhs = jax.jit(jax.vmap(module.rhs, (None, 0))).lower(0.3, x).compile()
    compile_time = time.perf_counter() - begin
    error = np.max(np.abs(np.asarray(rhs(0.3, x)) - data["dx"]) / np.abs(data["dx"]).max(axis=1, keepdims=True))
    once = find_shortest(lambda: rhs(0.3, x).block_until_ready(), clock) / len(x)

    def roll_out(x: Any) -> Any:
        def advance(x: Any, _: None) -> tuple[Any, None]:
            stepped = module.rk4_step(0.3, STEP, x)
            return (stepped[0] if isinstance(stepped, tuple) else stepped), None

        return jax.lax.scan(advance, x, None, length=ROLLOUT)[0]

    rolled = jax.jit(jax.vmap(roll_out)).lower(x).compile()
    step = find_shortest(lambda: rolled(x).block_until_ready(), clock) / len(x) / ROLLOUT
    kind = getattr(device, "device_kind", device.platform)
    print(
        f"  {kind} {dtype}: compiled in {compile_time:.1f} s; x' {1e6 * once:.4f} us each, "
        f"{once * len(x) / float(data['seconds']):.3f} of the compiled batch, error {error:.1e}; "
        f"a step of RK4 {1e6 * step:.4f} us each",
        flush=True,
    )


if __name__ == "__main__":
    main()
