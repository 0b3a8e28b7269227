"""FMU: make an FMU from a program, and run FMUs.

Input: ``DeclaredModelContent``, ``EquationsOfMotion`` and ``ScalarProgram``; to run: the path of an FMU. Output:
``FmuInterface`` (all that importers see), sources, compiled libraries, the ``.fmu`` archive; the recorded values of a
run.

Promises: the interface is decided once, and every backend only prints it; equal input gives equal bytes; external
tools run as subprocesses with a time limit; archives appear complete or not at all.

Must not: form or change equations, compare an FMU with a reference, or build reports.
"""
