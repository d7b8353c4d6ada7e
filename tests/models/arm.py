"""Every outcome that the Armv8 memory model allows for a few short threads.

A thread is a generator of the operations below; it is sent the value of each read. All paths of all threads are combined,
with every choice of which write each read sees (rf) and in which order writes reach memory (co). An execution counts if it
satisfies the three axioms of the model (Arm Architecture Reference Manual, B2.3, "The Armv8 memory model"):

    internal     per location, program order agrees with rf, co and fr
    atomic       no write comes between the read and the write of a swap
    external     ordered-before has no cycle: observed by another thread, barrier-, atomic- or locally ordered

Left out: order by dependencies (address, data, control). Without it more executions are allowed, so a property that holds
here holds on the machine. A 16-byte slot is one location: that its halves do not tear is the instructions' promise.
"""
from itertools import permutations, product

FULL, LOAD = "dmb ish", "dmb ishld"


def read(loc, acquire=False):
    return [("R", loc, acquire)]


def write(loc, value, release=False):
    return [("W", loc, value, release)]


def fence(kind):
    return [("F", kind)]


def swap(loc, seen, new, how):
    """Sends the value found. how: casp; ldxp, which writes back what is not `seen`; and, to plant bugs, ldxp-bare (without its
    DMB), relaxed (without acquire and release) and blind (relaxed, and not even atomic)."""
    return [("S", loc, seen, new, how)] + (fence(FULL) if how == "ldxp" else [])


class Event:
    def __init__(self, thread, kind, loc=None, value=None, order=False, fence=None):
        self.thread, self.kind, self.loc, self.value = thread, kind, loc, value
        self.order = order  # acquire of a read, release of a write
        self.fence = fence
        self.rmw = None  # the write that belongs to the read of a swap, and the other way round
        self.amo = False  # a single instruction


def paths(number, body, domain):
    """All runs of one thread, each as (events, result), if each read may see any value that its location ever has."""
    found, todo = [], [()]
    while todo:
        choices = todo.pop()
        events, left, thread, sent = [], list(choices), body(), None
        try:
            while True:
                for op in thread.send(sent):
                    if op[0] == "F":
                        events.append(Event(number, "F", fence=op[1]))
                    elif op[0] == "W":
                        events.append(Event(number, "W", op[1], op[2], op[3]))
                    else:
                        if not left:
                            todo += [choices + (value,) for value in domain[op[1]]]
                            raise LookupError
                        sent = left.pop(0)
                        events += accesses(number, op, sent)
        except StopIteration as end:
            found.append((events, end.value))
        except LookupError:
            pass
    return found


def accesses(number, op, value):
    if op[0] == "R":
        return [Event(number, "R", op[1], value, op[2])]
    _, loc, seen, new, how = op
    ordered = how not in ("relaxed", "blind")
    r = Event(number, "R", loc, value, ordered)
    if value != seen and not how.startswith("ldxp"):
        return [r]
    w = Event(number, "W", loc, new if value == seen else value, ordered)
    if how != "blind":
        r.rmw, w.rmw, w.amo = w, r, how == "casp"
    return [r, w]


def acyclic(events, edges):
    state = {}

    def visit(e):
        state[e] = 1
        for f in edges.get(e, ()):
            if state.get(f) == 1 or (f not in state and not visit(f)):
                return False
        state[e] = 2
        return True

    return all(e in state or visit(e) for e in events)


def ordered_locally(a, b, between):
    """Is a ordered before b, which comes later in the program? `between` are the events in the middle."""
    if a.kind == "F" or b.kind == "F":
        return False
    return (
        a.rmw is b
        or (a.loc == b.loc and b.kind == "W")
        or any(f.fence == FULL or (f.fence == LOAD and a.kind == "R") for f in between)
        or (a.kind == "R" and a.order)
        or (b.kind == "W" and b.order)
        or (a.kind == "W" and a.order and b.kind == "R" and b.order)
        or (a.kind == "W" and a.amo and a.order)
    )


def sources(reads, writes):
    """Every way to choose a write for each read; two swaps never take the same."""

    def choose(i, chosen, swapped):
        if i == len(reads):
            yield dict(chosen)
            return
        r = reads[i]
        for w in writes:
            if w.loc == r.loc and w.value == r.value and w is not r.rmw and not (r.rmw and w in swapped):
                yield from choose(i + 1, chosen + [(r, w)], swapped | {w} if r.rmw else swapped)

    yield from choose(0, [], frozenset())


def orders(writes, rf):
    """Every order of the writes of each location: a swap's write comes right after the one that it read."""
    per_loc = []
    for loc in sorted({w.loc for w in writes}):
        chains = {w: [w] for w in writes if w.loc == loc and w.rmw is None}
        after = {rf[w.rmw]: w for w in writes if w.loc == loc and w.rmw is not None}
        for chain in chains.values():
            while chain[-1] in after:
                chain.append(after[chain[-1]])
        if sum(map(len, chains.values())) != sum(w.loc == loc for w in writes):
            return  # swaps that read from each other in a circle
        first = next(c for w, c in chains.items() if w.thread is None)
        rest = [c for c in chains.values() if c is not first]
        per_loc.append([sum(order, first) for order in permutations(rest)])
    yield from product(*per_loc)


def allowed(threads, rf, co, lob, po_loc):
    events = [e for t in threads for e in t if e.kind != "F"] + [line[0] for line in co]
    later = {w: line[i + 1 :] for line in co for i, w in enumerate(line)}
    internal, external = {}, {}

    def step(graph, a, b):
        graph.setdefault(a, []).append(b)

    for a, b in po_loc:
        step(internal, a, b)
    for a, b in lob:
        step(external, a, b)
    for r, w in rf.items():
        step(internal, w, r)
        if w.thread != r.thread:
            step(external, w, r)
    for e, after in [(w, later[w]) for w in later] + [(r, later[w]) for r, w in rf.items()]:  # co and fr
        for w in after[:1]:
            step(internal, e, w)
        for w in after:
            if w.thread != e.thread:
                step(external, e, w)
    return acyclic(events, internal) and acyclic(events, external)


def outcomes(init, bodies):
    """All (results of the threads, final memory) that the model allows."""
    domain = {loc: {value} for loc, value in init.items()}
    while True:
        runs = [paths(i, body, domain) for i, body in enumerate(bodies)]
        size = sum(map(len, domain.values()))
        for e in (e for run in runs for events, _ in run for e in events if e.kind == "W"):
            domain[e.loc].add(e.value)
        if sum(map(len, domain.values())) == size:
            break
    found = set()
    for combination in product(*runs):
        threads = [events for events, _ in combination]
        writes = [Event(None, "W", loc, value) for loc, value in init.items()]
        writes += [e for t in threads for e in t if e.kind == "W"]
        reads = [e for t in threads for e in t if e.kind == "R"]
        there = {(w.loc, w.value) for w in writes}
        if any((r.loc, r.value) not in there for r in reads):
            continue
        pairs = [(a, b, t[i + 1 : j]) for t in threads for i, a in enumerate(t) for j, b in enumerate(t) if i < j]
        lob = [(a, b) for a, b, between in pairs if ordered_locally(a, b, between)]
        po_loc = [(a, b) for a, b, _ in pairs if a.loc is not None and a.loc == b.loc]
        results = tuple(result for _, result in combination)
        for rf in sources(reads, writes):
            for co in orders(writes, rf):
                end = tuple(sorted((line[-1].loc, line[-1].value) for line in co))
                if (results, end) not in found and allowed(threads, rf, co, lob, po_loc):
                    found.add((results, end))
    return found
