"""Runner: run FMUs by fmpy in separate processes, which ``validation.runs.fmu_process_start`` starts.

Input: ``request.json``, which names everything; nothing is read from the FMU's description. Output: values recorded
in experiments, and the answers of sessions (API checks during the run).

Promises: what goes wrong in an FMU is written down or kills this process only. Nothing but fmpy and NumPy is imported,
so that it begins quickly.

This stage must not judge anything.
"""
