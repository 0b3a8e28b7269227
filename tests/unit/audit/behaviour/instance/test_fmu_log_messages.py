"""Messages of FMI 2 are texts with formats: they are told as their arguments make them."""

from __future__ import annotations

import ctypes as c
import platform
from pathlib import Path

import ball
import pytest

from mb2fmu.audit.behaviour.instance.fmu_log_messages import find_messages_without_logging, make_printf_logger

SOURCE = """
typedef void (*logger_t)(void *, const char *, int, const char *, const char *, ...);
void speak(logger_t say) {
    say((void *)7, "one", 3, "error", "%d %s %.3f %5.1e %c%% %ld %d %d %.2f %s %g %g %g %g %g %g %g", 1, "two", 3.25,
        4e5, 'x', 1L << 40, 7, 8, 9.5, "ten", 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5);
    say((void *)7, "one", 0, "plain", "100 per cent");
    say((void *)7, "one", 0, "none", (const char *)0);
}
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="arguments are found on x86-64 only")
def test_arguments_are_put_in_as_the_c_library_does(tmp_path: Path) -> None:
    """Integers, texts and numbers, in registers and on the stack; and a text that is missing stays so."""
    path = tmp_path / "speaker.so"
    path.write_bytes(ball.compiled({"speaker.c": SOURCE}))
    taken: list[tuple[object, ...]] = []
    pointer, held = make_printf_logger(lambda *given: taken.append(given))
    c.CDLL(str(path)).speak(pointer)
    assert held is not None
    expected = b"1 two 3.250 4.0e+05 x% 1099511627776 7 8 9.50 ten 1.5 2.5 3.5 4.5 5.5 6.5 7.5"
    assert [each[4] for each in taken] == [expected, b"100 per cent", None]
    assert taken[0][:4] == (7, b"one", 3, b"error")


def test_answers_that_say_that_they_are_reported_are_reported_where_logging_is_off() -> None:
    kept = [(status, "c", "text") for status in range(5)]
    assert [each[0] for each in find_messages_without_logging(kept, 2)] == [0]
    assert [each[0] for each in find_messages_without_logging(kept, 3)] == [0, 1, 2]
