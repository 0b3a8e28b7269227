"""Compiler: turn equations of motion into one scalar program, and differentiate, analyse and evaluate it.

Input: ``EquationsOfMotion``. Output: ``ScalarProgram``: one graph of scalar operations with named entry points
(``rhs``, ``outputs``, …); programs with derivatives and with event modes as further entry points; NumPy functions of
them.

Promises: equal expressions are computed once; derivatives are exact, not by differences; every linear or nonlinear
solve is a block that can fail with a message; a program is never changed after it is built.

Must not: form equations, know FMI or an output language (except the Python of ``evaluation``), or write files.
"""
