"""Messages of one instance: kept, and checked by the rules for loggers."""

from __future__ import annotations

import ctypes as c
from collections.abc import MutableMapping, Sequence

from mb2fmu.audit.behaviour.instance.fmi_types import ERROR, STATUS, WARNING

MOST_MESSAGES = 10_000
"""Of one instance that are kept."""

MOST_SAID = 5
"""Messages of one call that a refusal repeats."""


class LoggedMessages:
    """Messages of an instance through its logger.

    Args:
        misdeeds: What is wrong with a message → the rule that it breaks.
        name: The instance's, which FMI 2 hands back to the logger.
    """

    def __init__(self, misdeeds: MutableMapping[str, str], name: bytes) -> None:
        self.kept: list[tuple[int, str, str]] = []
        self._misdeeds, self._name = misdeeds, name
        self._place = c.create_string_buffer(8)

    @property
    def environment(self) -> int:
        """The address that the FMU gets as the importer's environment, and must return."""
        return c.addressof(self._place)

    def take(
        self, environment: int | None, name: bytes | None, status: int, category: bytes | None, text: bytes | None
    ) -> None:
        """Keep a message, with its faults.

        Args:
            environment: As handed back.
            name: Of the instance; None in FMI 3, which has none there.
            status: As numbered by the standard.
            category: Of the message.
            text: Of the message.
        """
        if category is None or text is None:
            self._misdeeds["a message has a null pointer as its category or text"] = "log.null"
        if environment != self.environment:
            self._misdeeds["a message comes with another environment than that of its instance"] = "log.arguments"
        if name is not None and name != self._name:
            told = name.decode("utf-8", "backslashreplace")[:40]
            text_ = f'a message comes as that of "{told}"; its instance is "{self._name.decode()}"'
            self._misdeeds[text_] = "log.arguments"
        if not 0 <= status < len(STATUS):
            self._misdeeds[f"a message has status {status}, which the standard does not know"] = "log.arguments"
        for what, given in (("category", category), ("text", text)):
            if given is not None and not is_utf8(given):
                shown = given[:40].decode("utf-8", "backslashreplace")
                self._misdeeds[f'the {what} of a message is not UTF-8: "{shown}"'] = "value.text"
        if len(self.kept) < MOST_MESSAGES:
            self.kept.append(
                (status, (category or b"").decode("utf-8", "replace"), (text or b"").decode("utf-8", "replace"))
            )

    def since(self, seen: int) -> str:
        """Return the last messages after the first ``seen`` ones: the very last alone often lacks the cause."""
        return "; ".join(dict.fromkeys(text for _, _, text in self.kept[seen:][-MOST_SAID:]))

    def checked(self, given: bytes | None, name: str) -> bytes:
        """Return a text that was read with the variable of that name, and perhaps with others."""
        if given is None:
            self._misdeeds[f'reading "{name}": a null pointer as text is answered with OK'] = "value.text"
        elif not is_utf8(given):
            shown = given[:40].decode("utf-8", "backslashreplace")
            self._misdeeds[f'reading "{name}": a text is not UTF-8: "{shown}"'] = "value.text"
        return given or b""


def find_messages_without_logging(kept: Sequence[tuple[int, str, str]], version: int) -> list[tuple[int, str, str]]:
    """Return messages sent although logging is off.

    Errors are always told. So are warnings and what is discarded in FMI 2, where these answers themselves say that the
    logger was called (2.1.3); FMI 3 excepts errors only (2.3.1, fmi3SetDebugLogging).
    """
    return [each for each in kept if each[0] < (WARNING if version == 2 else ERROR)]


def is_utf8(given: bytes) -> bool:
    """Return whether bytes are UTF-8, as the standards want all texts."""
    try:
        given.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
