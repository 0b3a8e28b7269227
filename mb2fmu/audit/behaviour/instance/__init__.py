"""One instance of an FMU of any version and interface type, in this process or in a remote one.

Input: a library and its description. Output: ``FmuInstance``, whose calls return values or raise. Promises: every call
is observed and counted. Must not: judge what an FMU answers.
"""
