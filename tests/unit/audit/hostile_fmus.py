"""FMUs that harm their host, each in one way: what they do, and the rules of which one has to say it.

One library is compiled; the number of the harm is patched into it, so that each FMU costs nothing to make.
"""

from __future__ import annotations

import functools
from pathlib import Path

import ball
from kept_compilations import compile_files

# number: (what it does, rules of which one names it, further rules that may be named with it)
HARMS: dict[int, tuple[str, str]] = {
    1: ("ends the process with 0 while it is loaded", "life.crash"),
    2: ("aborts while it is loaded", "life.crash"),
    3: ("loops while it is loaded", "life.crash"),
    4: ("writes to address 8 while it is loaded", "life.crash"),
    5: ("kills its parent while it is loaded", "host.system"),
    6: ("prints while it is loaded", "host.output"),
    7: ("aborts when it is unloaded", "life.unload"),
    11: ("loops at instantiation", "life.crash"),
    12: ("sleeps at instantiation", "life.crash"),
    13: ("ends the process with 0", "life.crash"),
    14: ("ends the process with 77", "life.crash"),
    15: ("makes no instance", "life.instantiate"),
    16: ("takes all memory", "life.crash life.instantiate"),
    17: ("stops its own process", "life.crash"),
    18: ("changes the working folder", "host.restored"),
    19: ("removes the folder that it lies in", "host.files"),
    20: ("sets an alarm", "life.crash host.restored"),  # a fast machine is done before it rings
    21: ("logs without end", "life.crash"),
    22: ("logs null pointers", "log.null"),
    23: ("blocks all signals and loops", "life.crash"),
    31: ("loops in a step", "life.crash"),
    32: ("sleeps in a step", "life.crash"),
    33: ("writes to address 8", "life.crash"),
    34: ("divides by zero", "life.crash"),
    35: ("runs an illegal instruction", "life.crash"),
    36: ("recurses without end", "life.crash"),
    37: ("frees twice", "life.crash"),
    38: ("kills its parent", "host.system"),
    39: ("kills everybody", "host.system"),
    40: ("kills itself", "life.crash"),
    41: ("forks a child that loops", "host.processes"),
    42: ("forks a daemon", "host.processes"),
    43: ("forks without end", "host.processes"),
    44: ("calls system", "host.processes"),
    45: ("calls popen", "host.processes"),
    46: ("becomes another program", "host.processes"),
    47: ("connects", "host.network"),
    48: ("listens", "host.network"),
    49: ("writes into resources", "host.files"),
    50: ("writes into the home folder", "host.files"),
    51: ("writes into the working folder", "host.files"),
    52: ("writes elsewhere", "host.files"),
    53: ("writes into all descriptors", "host.output"),
    54: ("closes all descriptors", "host.restored"),
    55: ("leaves a thread that loops", "life.leak"),
    56: ("prints a lot", "host.output"),
    57: ("traces its parent", "host.system"),
    58: ("leaves descriptors open", "life.leak"),
    59: ("writes 300 MB", "life.crash host.files"),
    60: ("ends the thread that calls it", "life.crash"),
    61: ("renames the machine", "host.system"),
    62: ("answers status 42", "life.calls"),
    63: ("writes its own description", "host.files"),
    64: ("leaves temporary files", "host.files"),
    65: ("limits the stack", "host.restored life.crash"),
    66: ("removes a file elsewhere", "host.files"),
    67: ("changes the mask of modes", "host.restored"),
    68: ("changes the environment", "host.restored"),
    71: ("loops when it is freed", "life.crash"),
    72: ("crashes when it is freed", "life.crash"),
    73: ("hands out a string at address 8", "life.crash"),
    74: ("has a state of 2^60 bytes", "state.serialize"),
    82: ("handles every fault and goes on", "life.crash host.restored"),
    83: ("wants to outlive its host, and loops", "life.crash"),
    84: ("leaves a segment of shared memory", "host.files"),
    85: ("asks for rings that do what is forbidden", "host.system host.network"),
    86: ("kills its parent by a descriptor", "host.system"),
    87: ("writes into its parent's memory", "host.system"),
    88: ("leaves a link to elsewhere, and folders that nobody may enter", "host.files"),
    89: ("starts threads without end", "life.crash life.leak host.processes"),
    90: ("writes to the system's log", "host.network"),
    91: ("moves into a namespace of its own", "host.system"),
    92: ("opens a pipe that nobody reads", "life.crash host.files"),
    93: ("pins its host to one processor", "host.restored host.system"),
    94: ("opens its host's standard input anew", "host.restored"),
    95: ("leaves a thread that waits", "life.leak"),
}  # fmt: skip


@functools.cache
def library() -> bytes:
    """The calm one."""
    folder = ball.scratch() / "hostile"
    folder.mkdir(exist_ok=True)
    target = folder / "hostile.so"
    command = [
        *ball.compiler(), "-shared", "-fPIC", "-O0", "-w", f"-I{ball.HEADERS}", f"-I{ball.HERE / 'foreign'}",
        str(ball.HERE / "foreign" / "hostile.c"), "-o", str(target), "-lm", "-lpthread",
    ]  # fmt: skip
    compile_files(folder, command)
    return target.read_bytes()


def unit(harm: int, path: Path, kinds: tuple[str, ...] = ("CoSimulation",)) -> Path:
    """An archive whose FMU does one harm; 0: none."""
    content = library()
    assert content.count(b"HARM=000") == 1
    members = ball.contents(2, kinds)
    members[ball.BINARIES[2]] = content.replace(b"HARM=000", b"HARM=%03d" % harm)
    return ball.pack(members, path)
