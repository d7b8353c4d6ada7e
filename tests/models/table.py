"""The table's protocol under the Armv8 memory model: every property with each way to swap and load that base/pair.h has.

First the checker itself: textbook cases, whose outcomes are known. Then the properties; and each property once more with an
order left out that it needs, where the checker has to find the outcome that must not be. So a check that cannot fail is
noticed. Locks are a swap with acquire and release (LDAXR, STLXR or CASAL) and a store with release, as base/lock.c has them.
"""
import sys

from arm import FULL, LOAD, fence, outcomes, read, swap, write

# name, swap, load: "ldp" is LDP and DMB ISHLD, "swap" reads by a swap of (0, 0) with itself.
MACHINES = [("CASP and LSE2", "casp", "ldp"), ("CASP", "casp", "swap"), ("LDXP and STXP", "ldxp", "swap")]
EMPTY = ("", 0)
R, LEAVING, ARRIVING, OTHER = "r", "r*", "r^", "s"


class Machine:
    def __init__(self, how, load, lock=None, acquire=True, release=True):
        self.how, self.by = how, load
        self.lock_how = lock or ("casp" if how == "casp" else "ldxp-bare")
        self.acquire, self.release = acquire, release

    def swap(self, loc, seen, new):
        return swap(loc, seen, new, self.how)

    def load(self, loc):
        if self.by == "ldp":
            return read(loc) + fence(LOAD)
        return read(loc) if self.by == "bare" else swap(loc, EMPTY, EMPTY, self.how)

    def lock(self):
        """For `if (yield m.lock()) != 0: return`: an execution in which the lock was taken stands for those that waited."""
        return swap("lock", 0, 1, self.lock_how)

    def unlock(self):
        return write("lock", 0, self.release)


# ---- the checker -------------------------------------------------------------------------------------------------------


def two(first, second):
    """Two threads of two steps each; each returns what it read last."""

    def thread(steps):
        def body():
            got = None
            for ops in steps:
                sent = yield ops
                got = sent if any(op[0] in "RS" for op in ops) else got
            return got

        return body

    return [thread(first), thread(second)]


def seen(init, bodies, results):
    return results in {r for r, _ in outcomes(init, bodies)}


def textbook():
    x, y = write("x", 1), write("y", 1)
    rx, ry, ax, ay = read("x"), read("y"), read("x", True), read("y", True)
    full, ld = fence(FULL), fence(LOAD)
    zero = {"x": 0, "y": 0}

    def mp(writer, reader):  # message passing: is y's new value seen without x's?
        def first():
            for ops in writer:
                yield ops

        def second():
            values = []
            for ops in reader:
                sent = yield ops
                if ops[0][0] == "R":
                    values.append(sent)
            return tuple(values)

        return seen(zero, [first, second], (None, (1, 0)))

    def sb(a, b):  # store buffering: do both read the old value?
        return seen(zero, two(a, b), (0, 0))

    def lb(a, b):
        return seen(zero, two(a, b), (1, 1))

    rel_y, rel_x = write("y", 1, True), write("x", 1, True)
    iriw = [
        lambda: (yield x) and None,
        lambda: (yield y) and None,
    ]

    def reader(a, b):
        def body():
            first = yield a
            second = yield b
            return (first, second)

        return body

    iriw_plain = iriw + [reader(rx, ry), reader(ry, rx)]
    iriw_acquire = iriw + [reader(ax, ry), reader(ay, rx)]
    bad = (None, None, (1, 0), (1, 0))

    def swaps(how):
        return two([swap("x", 0, 1, how), ry], [swap("y", 0, 1, how), rx])

    return [
        ("MP", True, mp([x, y], [ry, rx])),
        ("MP+dmb+po", True, mp([x, full, y], [ry, rx])),
        ("MP+dmb+dmb.ld", False, mp([x, full, y], [ry, ld, rx])),
        ("MP+rel+acq", False, mp([x, rel_y], [ay, rx])),
        ("MP+rel+po", True, mp([x, rel_y], [ry, rx])),
        ("SB", True, sb([x, ry], [y, rx])),
        ("SB+dmbs", False, sb([x, full, ry], [y, full, rx])),
        ("SB+dmb.lds", True, sb([x, ld, ry], [y, ld, rx])),
        ("SB+rel+acq", False, sb([rel_x, ay], [rel_y, ax])),
        ("SB+rel+po", True, sb([rel_x, ry], [rel_y, rx])),
        ("LB", True, lb([ry, x], [rx, y])),
        ("LB+acqs", False, lb([ay, x], [ax, y])),
        ("IRIW", True, seen(zero, iriw_plain, bad)),
        ("IRIW+acqs", False, seen(zero, iriw_acquire, bad)),
        ("SB+casps", False, seen(zero, swaps("casp"), (0, 0))),
        ("SB+ldxps without DMB", True, seen(zero, swaps("ldxp-bare"), (0, 0))),
        ("SB+ldxps", False, seen(zero, swaps("ldxp"), (0, 0))),
        ("CoRR", False, (1, 0) in {r[1] for r, _ in outcomes({"x": 0}, [iriw[0], reader(rx, rx)])}),
        ("CAS+CAS", False, ((True, True), (("x", 1),)) in outcomes({"x": 0}, [adder("casp"), adder("casp")])),
    ]


def adder(how):
    def body():
        value = yield read("x")
        return value < 2 and (yield swap("x", value, value + 1, how)) == value

    return body


# ---- the protocol ------------------------------------------------------------------------------------------------------
# Each property returns (initial memory, threads, is_bad(results, memory)).


def a_swap_is_a_full_barrier(m):
    """Two threads that each swap a slot and then look at the other's: one of them sees the other."""

    def side(mine, others):
        def body():
            yield m.swap(mine, EMPTY, (R, 1))
            return (yield m.load(others))

        return body

    bad = lambda results, memory: results == (EMPTY, EMPTY)
    return {"A": EMPTY, "B": EMPTY}, [side("A", "B"), side("B", "A")], bad


def a_load_acquires_what_a_swap_released(m):
    def writer():
        yield write("data", 1)
        yield m.swap("A", EMPTY, (R, 1))

    def reader():
        slot = yield m.load("A")
        return (slot, (yield read("data")))

    return {"A": EMPTY, "data": 0}, [writer, reader], lambda results, memory: results[1] == ((R, 1), 0)


def a_key_is_never_there_twice(m):
    """G2: a key enters under its lock, when it is in neither of its lines."""

    def insert(first, second):
        def body():
            if (yield m.lock()) != 0:
                return "waits"
            a = yield m.load(first)
            b = yield m.load(second)
            if R not in (a[0], b[0]) and a == EMPTY:
                yield m.swap(first, EMPTY, (R, 1))
            yield m.unlock()

        return body

    bad = lambda results, memory: memory["A"][0] == memory["B"][0] == R
    return {"A": EMPTY, "B": EMPTY, "lock": 0}, [insert("A", "B"), insert("B", "A")], bad


def move(m, wide=False):
    """The five steps of table/move.c."""

    def body():
        if (yield m.lock()) != 0:
            return "waits"
        was = yield m.load("A")
        if was[0] == R and (yield m.swap("A", was, (LEAVING, was[1]))) == was:
            if (yield m.swap("B", EMPTY, (ARRIVING, was[1]))) == EMPTY:
                if wide:
                    yield write("record", 1)
                yield m.swap("B", (ARRIVING, was[1]), was)
                yield m.swap("A", (LEAVING, was[1]), EMPTY)
        yield m.unlock()

    return body


def a_move_loses_no_charge(m):
    """G1: a key is charged without a lock while it is moved."""

    def charge():
        for slot in ("A", "B"):
            was = yield m.load(slot)
            if was == (R, 0):  # one unit is free
                return (yield m.swap(slot, was, (R, 1))) == was
        return False

    def bad(results, memory):
        keys = [memory[slot] for slot in ("A", "B") if memory[slot] != EMPTY]
        return keys != [(R, 1 if results[1] else 0)]

    return {"A": (R, 0), "B": EMPTY, "lock": 0}, [move(m), charge], bad


def a_search_under_the_lock_finds_the_key_once(m):
    """G2, G5: whoever has the lock sees no move under way."""

    def search():
        if (yield m.lock()) != 0:
            return "waits"
        a = yield m.load("A")
        b = yield m.load("B")
        return (a, b)

    def bad(results, memory):
        return results[1] != "waits" and sorted(results[1]) != [EMPTY, (R, 0)]

    return {"A": (R, 0), "B": EMPTY, "lock": 0}, [move(m), search], bad


def a_record_moves_before_its_key_is_found(m):
    """G6: M3 before M4, seen under the lock."""

    def search():
        if (yield m.lock()) != 0:
            return "waits"
        b = yield m.load("B")
        return (b[0], (yield read("record")))

    init = {"A": (R, 0), "B": EMPTY, "lock": 0, "record": 0}
    return init, [move(m, wide=True), search], lambda results, memory: results[1] == (R, 0)


def an_evicted_key_comes_back_once(m):
    """G3: another key takes r's slot without r's lock, while r is charged or enters again."""

    def evict():
        was = yield m.load("A")
        return was[0] == R and (yield m.swap("A", was, (OTHER, 1))) == was

    def enter():
        if (yield m.lock()) != 0:
            return "waits"
        a = yield m.load("A")
        b = yield m.load("B")
        if a[0] == R:
            done = a[1] == 0 and (yield m.swap("A", a, (R, 1))) == a
        else:
            done = b == EMPTY and (yield m.swap("B", EMPTY, (R, 1))) == EMPTY
        yield m.unlock()
        return done

    def bad(results, memory):
        tags = (memory["A"][0], memory["B"][0])
        return tags.count(R) > 1 or (results[0] and memory["A"] != (OTHER, 1))

    return {"A": (R, 0), "B": EMPTY, "lock": 0}, [evict, enter], bad


def parameters_are_complete_when_their_version_is_seen(m):
    def change():
        yield write("count", 1)
        yield write("burst", 1)
        yield write("version", 1, m.release)

    def decide():
        version = yield read("version", m.acquire)
        return (version, (yield read("burst")), (yield read("count")))

    init = {"version": 0, "count": 0, "burst": 0}
    return init, [change, decide], lambda results, memory: results[1][0] == 1 and 0 in results[1][1:]


def a_reload_and_a_request_see_each_other(m):
    """rules/live/gate.c: fetch_add_ordered() and load_ordered() against store_ordered() and load_ordered()."""

    def enter():
        yield swap("inside", 0, 1, m.lock_how)
        return (yield read("closed", m.acquire))

    def close():
        yield write("closed", 1, m.release)
        return (yield read("inside", m.acquire))

    return {"inside": 0, "closed": 0}, [enter, close], lambda results, memory: results == (0, 0)


# Property, and what it is checked with that is wrong: it must then fail.
PROPERTIES = [
    (a_swap_is_a_full_barrier, Machine("ldxp-bare", "ldp")),
    (a_load_acquires_what_a_swap_released, Machine("casp", "bare")),
    (a_key_is_never_there_twice, Machine("casp", "bare", lock="relaxed")),
    (a_move_loses_no_charge, Machine("blind", "ldp")),
    (a_search_under_the_lock_finds_the_key_once, Machine("casp", "ldp", lock="relaxed")),
    (a_record_moves_before_its_key_is_found, Machine("relaxed", "bare", lock="relaxed", release=False)),
    (an_evicted_key_comes_back_once, Machine("blind", "ldp")),
    (parameters_are_complete_when_their_version_is_seen, Machine("casp", "ldp", acquire=False)),
    (a_reload_and_a_request_see_each_other, Machine("ldxp", "swap", acquire=False)),
]


def fails(make, machine):
    init, threads, bad = make(machine)
    all_outcomes = outcomes(init, threads)
    assert all_outcomes, make.__name__
    return [o for o in all_outcomes if bad(o[0], dict(o[1]))], len(all_outcomes)


def main():
    wrong = 0
    for name, expected, found in textbook():
        if found != expected:
            wrong += 1
            print(f"the checker is wrong about {name}: {'allowed' if found else 'forbidden'}")
    for make, planted in PROPERTIES:
        for name, how, load in MACHINES:
            bad, count = fails(make, Machine(how, load))
            print(f"{make.__name__}, {name}: {count} outcomes")
            if bad:
                wrong += 1
                print(f"    must not be: {bad[0]}")
        if not fails(make, planted)[0]:
            wrong += 1
            print(f"{make.__name__}: holds without the order that it needs; the check cannot fail")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
