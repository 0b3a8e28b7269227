"""Tools for agents, by the Model Context Protocol over stdin and stdout: ``mb2fmu mcp``.

Input: calls of tools, with names of files in the folder where the server was started. Output: for each call the text of
the terminal, facts as JSON, and a verdict in both.

Promises: a call names no file outside the folder; each answer ends in a verdict; no port is opened; a command that
takes too long is ended with all its processes.

Must not: judge by itself; each tool is a command of mb2fmu in a process of its own.
"""
