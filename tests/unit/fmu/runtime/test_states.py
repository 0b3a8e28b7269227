"""States: the same bits back, across instances, processes, FMI versions and compilers; nothing of others."""

import ctypes as c
import math
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from native.building import TOKEN, build, compilers
from native.fmi import CS, DISCARD, ERROR, ME, OK, REALS, Unit, bits, load


def driven(unit, steps, start=0):
    """Steps with changing inputs and sizes; what can be seen after each, as bits."""
    seen = []
    time = unit.value("time")
    for step in range(start, start + steps):
        size = 0.05 + 0.01 * (step % 3)
        assert unit.set("force", 0.1 * (step % 7)) == OK
        assert unit.step(time, size) == OK
        time = unit.value("time")
        seen.append(bits(unit.get(*REALS)[1]))
    return seen


def begun(unit, solver=1):
    assert unit.set_choice("solver", solver) == OK
    return unit.start(tolerance=1e-6, mass=3.0)


@pytest.mark.parametrize("solver", [1, 2, 3, 4])
def test_the_same_bits_after_going_back(fresh, solver):
    unit = begun(fresh(CS), solver)
    driven(unit, 5)
    state = unit.get_state()
    first = driven(unit, 10, 5)
    assert unit.set_state(state) == OK
    assert driven(unit, 10, 5) == first
    other = fresh(CS)
    assert other.set_state(state) == OK
    assert driven(other, 10, 5) == first
    assert unit.free_state(state) == OK
    assert not state


@pytest.mark.parametrize("solver", [1, 4])
def test_the_same_bits_in_another_version_and_by_another_compiler(solver):
    names = list(compilers())
    ways = [(2, names[-1], "-O1"), (3, names[-1], "-O0"), (3, names[0], "-O2")]
    runs = {}
    data = None
    for fmi, compiler, opt in ways:
        unit = Unit(load(build(fmi, opt, compiler=compiler)), fmi, CS).instantiate()
        if data is None:
            begun(unit, solver)
            driven(unit, 5)
            data = unit.saved()
        else:
            assert unit.restore(data) == OK
            assert unit.saved() == data
        runs[fmi, compiler, opt] = driven(unit, 10, 5)
        unit.free()
    assert len({tuple(seen) for seen in runs.values()}) == 1


def test_a_state_goes_on_in_another_process(fresh):
    unit = begun(fresh(CS))
    driven(unit, 5)
    data = unit.saved()
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from unit.fmu.runtime.test_states import *
unit = Unit(load({str(build(unit.fmi))!r}), {unit.fmi}, CS).instantiate()
assert unit.restore(sys.stdin.buffer.read()) == OK
print(b"".join(driven(unit, 5, 5)).hex())
"""
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True, timeout=60)
    assert bytes.fromhex(done.stdout.decode()) == b"".join(driven(unit, 5, 5))


def test_the_state_of_the_protocol_belongs_to_it(fresh, kind):
    unit = fresh(kind)
    early = unit.get_state()
    unit.start()
    late = unit.get_state()
    assert unit.call("Terminate") == OK
    assert unit.set_state(late) == OK
    assert unit.call("Terminate") == OK
    assert unit.set_state(early) == OK
    assert unit.enter() == OK
    for state in (early, late):
        assert unit.free_state(state) == OK


def test_an_error_is_left_by_setting_a_state(fresh, kind):
    unit = fresh(kind).start()
    state = unit.get_state()
    assert unit.set("omega", 1.0) == ERROR
    assert unit.set("force", 1.0) == ERROR
    assert unit.set_state(state) == OK
    assert unit.set("force", 1.0) == OK
    assert unit.free_state(state) == OK


def test_a_failed_step_is_repeated_from_a_state(fresh):
    unit = fresh(CS).start(force=50.0)
    state = unit.get_state()
    assert unit.step(0.0, 10.0) == DISCARD
    assert unit.set_state(state) == OK
    assert unit.step(0.0, 0.1) == OK
    assert unit.free_state(state) == OK


def test_an_object_given_before_is_used_again(fresh, kind):
    unit = fresh(kind).start()
    state = unit.get_state()
    place = c.c_void_p(state.value)
    assert unit.set("force", 2.0) == OK
    assert unit.call("GetFMUstate" if unit.fmi == 2 else "GetFMUState", c.byref(place)) == OK
    assert place.value == state.value
    assert unit.set("force", 1.0) == OK
    assert unit.set_state(state) == OK
    assert unit.value("force") == 2.0
    assert unit.free_state(state) == OK
    assert unit.free_state(c.c_void_p()) == OK


def test_bytes_are_little_endian_and_name_the_fmu(fresh, kind):
    data = fresh(kind).saved()
    assert data[:8] == b"MB2FMUST"
    assert data[8:16] == (3).to_bytes(8, "little")
    assert data[16:24] == len(TOKEN).to_bytes(8, "little")
    assert data[24 : 24 + len(TOKEN)].decode() == TOKEN
    assert struct.pack("<2d", 1.0, 0.0) in data


def test_every_flipped_bit_is_noticed(fresh):
    unit = begun(fresh(CS))
    driven(unit, 2)
    data = unit.saved()
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        other = fresh(CS)
        status, state = other.deserialize(bytes(damaged))
        assert status == ERROR
        assert not state
        other.free()


def checksum(data: bytes) -> bytes:
    """FNV-1a with 64 bits."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return total.to_bytes(8, "little")


HEAD = 8 + 8 + 8 + len(TOKEN) + 6 * 8  # mark, format, length of the token, token, kind and numbers
FIELDS = [
    *("mode", "solver", "stop defined", "experiment defined", "last status", "time", "rest", "steps", "start"),
    *("stop", "tolerance", "internal step", "x", "v"),
]
"""Of the snapshot, 8 bytes each, from HEAD on."""

IMPOSSIBLE = {
    "mode": [0, 3, 64, 512, -1],
    "solver": [0, 5, -1, 2],  # another one than integrates
    "stop defined": [2, -1],
    "experiment defined": [2, -1],
    "last status": [-1, 5],
    "time": [math.inf, math.nan],
    "rest": [1e76, -1e76, 1e-3, math.inf, math.nan],
    "steps": [-1, 2**62, -(2**62)],
    "start": [math.inf, math.nan],
    "stop": [math.nan, math.inf],
    "tolerance": [0.0, -1e-6, math.nan],
    "internal step": [-1.0, math.inf],
    "x": [math.inf, math.nan],
    "v": [-math.inf],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in IMPOSSIBLE.items() for value in values]
)
def test_whole_bytes_of_impossible_states_are_refused(fresh, field, value):
    """With a right checksum: a clock whose rest is 1e76 s would have made the next step end at −2e76 s."""
    unit = begun(fresh(CS))
    driven(unit, 2)
    data = bytearray(unit.saved())
    place = HEAD + 8 * FIELDS.index(field)
    assert struct.unpack_from("<d", data, HEAD + 8 * FIELDS.index("time"))[0] == unit.value("time")
    struct.pack_into("<d" if isinstance(value, float) else "<q", data, place, value)
    data[-8:] = checksum(data[:-8])
    other = fresh(CS)
    status, state = other.deserialize(bytes(data))
    assert (status, bool(state)) == (ERROR, False)
    assert "that no unit can have been in" in other.log[-1].text


def test_the_checksum_is_the_one_of_the_bytes(fresh, kind):
    data = begun(fresh(kind)).saved()
    assert checksum(data[:-8]) == data[-8:]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 20, 100, -8, -1])
def test_bytes_that_were_cut_off(fresh, kind, length):
    unit = fresh(kind)
    data = unit.saved()
    assert unit.deserialize(data[:length])[0] == ERROR
    assert f"these {len(data[:length])} bytes are" in unit.log[-1].text
    assert fresh(kind).deserialize(data + b"\0")[0] == ERROR


def test_states_of_others_are_refused(fresh, kind):
    stranger = Unit(
        load(build(fresh.fmi, '-DMB2FMU_TOKEN="0b5b1a56-6b0e-5d5c-8e52-6ad1d0c7a002"')), fresh.fmi, kind
    ).instantiate(token=b"0b5b1a56-6b0e-5d5c-8e52-6ad1d0c7a002")
    unit = fresh(kind)
    assert unit.deserialize(stranger.saved())[0] == ERROR
    assert "the state of another unit" in unit.log[-1].text
    stranger.free()
    other, unit = fresh(ME if kind == CS else CS), fresh(kind)
    state = other.get_state()
    assert unit.set_state(state) == ERROR
    assert fresh(kind).deserialize(other.serialize(state))[0] == ERROR
    assert other.free_state(state) == OK


def test_a_refused_state_changes_nothing(fresh):
    unit = begun(fresh(CS))
    driven(unit, 3)
    values, data = unit.get(*REALS), bytearray(unit.saved())
    data[-20] ^= 1
    assert unit.deserialize(bytes(data))[0] == ERROR
    assert unit.get(*REALS) == values


def test_room_must_suffice_and_pointers_must_be_there(fresh, kind):
    word = "state" if fresh.fmi == 2 else "State"
    for name, arguments in (
        (f"SerializeFMU{word}", lambda state: (state, (c.c_ubyte * 8)(), c.c_size_t(8))),
        (f"SerializeFMU{word}", lambda state: (state, None, c.c_size_t(10_000))),
        (f"SerializeFMU{word}", lambda _: (None, (c.c_ubyte * 8)(), c.c_size_t(8))),
        (f"SerializedFMU{word}Size", lambda state: (state, None)),
        (f"SerializedFMU{word}Size", lambda _: (None, c.byref(c.c_size_t()))),
        (f"GetFMU{word}", lambda _: (None,)),
        (f"SetFMU{word}", lambda _: (None,)),
    ):
        unit = fresh(kind)
        state = unit.get_state()
        assert unit.call(name, *arguments(state)) == ERROR
        assert unit.free_state(state) == OK
