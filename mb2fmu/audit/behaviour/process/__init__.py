"""Processes that run an FMU: sandbox, monitored system calls, shared memory, time budgets, clean-up.

Input: a process. Output: limits, messages and measurements of it. Promises: however a process ends, all its descendants
end with it. Must not: know FMI or trials.
"""
