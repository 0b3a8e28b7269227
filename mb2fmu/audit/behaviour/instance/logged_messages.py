"""Log messages of one instance, recorded and checked by the rules for loggers."""

from __future__ import annotations

import ctypes as c
from collections.abc import MutableMapping, Sequence

from mb2fmu.audit.behaviour.instance.fmi_types import ERROR, STATUS_NAMES, WARNING

MAX_KEPT_MESSAGES = 10_000
"""Most messages of one instance that are kept."""

MAX_QUOTED_MESSAGES = 5
"""Most messages of one call that an error quotes."""


class LoggedMessages:
    """Messages of an instance through its logger.

    Args:
        violations: What is wrong with a message → the rule that it breaks.
        name: The instance's, which FMI 2 hands back to the logger.
    """

    def __init__(self, violations: MutableMapping[str, str], name: bytes) -> None:
        self.messages: list[tuple[int, str, str]] = []
        self._violations, self._name = violations, name
        self._environment_buffer = c.create_string_buffer(8)

    @property
    def environment(self) -> int:
        """The address that the FMU gets as the importer's environment, and must return."""
        return c.addressof(self._environment_buffer)

    def record(
        self, environment: int | None, name: bytes | None, status: int, category: bytes | None, text: bytes | None
    ) -> None:
        """Record a message and its faults.

        Args:
            environment: As handed back.
            name: Of the instance; None in FMI 3, which has none there.
            status: As numbered by the standard.
            category: Of the message.
            text: Of the message.
        """
        if category is None or text is None:
            self._violations["a message has a null pointer as its category or text"] = "log.null"
        if environment != self.environment:
            self._violations["a message comes with another environment than that of its instance"] = "log.arguments"
        if name is not None and name != self._name:
            shown_name = name.decode("utf-8", "backslashreplace")[:40]
            violation = f'a message comes as that of "{shown_name}"; its instance is "{self._name.decode()}"'
            self._violations[violation] = "log.arguments"
        if not 0 <= status < len(STATUS_NAMES):
            self._violations[f"a message has status {status}, which the standard does not know"] = "log.arguments"
        for part, content in (("category", category), ("text", text)):
            if content is not None and not is_utf8(content):
                shown = content[:40].decode("utf-8", "backslashreplace")
                self._violations[f'the {part} of a message is not UTF-8: "{shown}"'] = "value.text"
        if len(self.messages) < MAX_KEPT_MESSAGES:
            self.messages.append(
                (status, (category or b"").decode("utf-8", "replace"), (text or b"").decode("utf-8", "replace"))
            )

    def messages_since(self, count: int) -> str:
        """Return the last messages after the first ``count`` ones: the very last alone often lacks the cause."""
        return "; ".join(dict.fromkeys(text for _, _, text in self.messages[count:][-MAX_QUOTED_MESSAGES:]))

    def check_text(self, content: bytes | None, variable_name: str) -> bytes:
        """Return a text that was read with the variable of that name, and perhaps with others."""
        if content is None:
            self._violations[f'reading "{variable_name}": the FMU returns OK and a null pointer as text'] = "value.text"
        elif not is_utf8(content):
            shown = content[:40].decode("utf-8", "backslashreplace")
            self._violations[f'reading "{variable_name}": a text is not UTF-8: "{shown}"'] = "value.text"
        return content or b""


def find_messages_without_logging(messages: Sequence[tuple[int, str, str]], version: int) -> list[tuple[int, str, str]]:
    """Return messages sent although logging is off.

    Errors are always logged. So are Warning and Discard in FMI 2, whose statuses themselves mean that the
    logger was called (2.1.3); FMI 3 excepts errors only (2.3.1, fmi3SetDebugLogging).
    """
    return [message for message in messages if message[0] < (WARNING if version == 2 else ERROR)]


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8, as the standards want all texts."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
