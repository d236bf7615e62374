"""Many threads at one gate, for any interpreter: needs nothing but the package. `python storm.py [ROUNDS]`

Prints "calm" when nothing was lost. Where there is no interpreter lock the threads run truly at once.
"""

from __future__ import annotations

import asyncio
import gc
import pickle
import sys
import sysconfig
import threading
import warnings

from tidegate import Gate, Priority, Shed, use_priority

LIMIT, THREADS = 5, 16


class Inside:
    """An independent count of who is in the body."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.now -= 1


def storm(rounds: int) -> None:
    """Every kind of entry and exit at once, under a limit that moves."""
    gate, inside = Gate("db", LIMIT, timing=True), Inside()
    attempts, refused, done = [0] * THREADS, [0] * THREADS, threading.Event()
    shared: list[object] = []
    errors: list[BaseException] = []

    @gate.guard
    def guarded() -> None:
        with inside:
            pass

    @gate.guard
    def items() -> object:
        with inside:
            yield 1

    async def enter() -> None:
        async with gate:
            with inside:
                await asyncio.sleep(0)

    def one(kind: int) -> None:
        priority = list(Priority)[kind % 4]
        if kind == 0:
            with gate, inside:
                pass
        elif kind == 1:
            with gate.admit(priority=priority), inside:
                pass
        elif kind == 2:
            guarded()
        elif kind == 3:
            list(items())
        elif kind == 4:
            with use_priority(priority), gate, inside:
                pass
        elif kind == 5:
            permit = gate.try_admit(priority=priority)
            if permit is None:
                raise Shed("db", "limit", priority, 0, 0)
            shared.append(permit)  # for whoever comes by to release, perhaps twice
        elif kind == 6:
            gate.admit().__enter__()  # forgotten
        else:
            asyncio.run(enter())

    def use(number: int) -> None:
        try:
            for n in range(rounds):
                attempts[number] += 1
                kind = (number + n) % 8 if n % 50 == 0 else (number + n) % 7
                try:
                    one(kind)
                except Shed as shed:
                    refused[number] += 1
                    if n % 64 == 0:
                        pickle.loads(pickle.dumps(shed))
                for permit in shared[-2:]:
                    permit.release()
                if n % 16 == 0:
                    del shared[:-4]
                    gate.stats()
                    repr(gate)
        except BaseException as error:
            errors.append(error)

    def move() -> None:
        n = 0
        while not done.is_set():
            n += 1
            gate.set_limit(1 + n % LIMIT, cause="moving")
            gate.set_thresholds({"sheddable": (n % 10) / 10})
            gate.retry_after(priority="sheddable")

    threads = [threading.Thread(target=use, args=(n,)) for n in range(THREADS)]
    mover = threading.Thread(target=move)
    for thread in [*threads, mover]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    mover.join()
    if errors:
        raise errors[0]

    shared.clear()
    gc.collect()
    stats = gate.stats()
    admitted, released = sum(stats.admitted.values()), sum(stats.released.values())
    shed = sum(sum(reasons.values()) for reasons in stats.shed.values())
    assert inside.most <= LIMIT, f"{inside.most} inside"
    assert stats.high_water <= LIMIT, stats
    assert (stats.in_flight, stats.unmatched_exits) == (0, 0), stats
    assert admitted == released, (admitted, released)
    assert shed == sum(refused), (shed, refused)
    assert admitted + shed == sum(attempts), (admitted, shed, attempts)
    gate.set_limit(LIMIT)
    gate.set_thresholds({})
    last = [gate.try_admit() for _ in range(LIMIT + 1)]
    assert all(last[:-1]), "room was lost"
    assert last[-1] is None, "room was made"


def release_from_all_sides(rounds: int) -> None:
    """Threads that release one permit at the same moment: one of them is the one."""
    gate = Gate("db", 1)
    barrier = threading.Barrier(4)
    firsts: list[int] = []
    current: list[object] = [None]

    def use(number: int) -> None:
        for _ in range(rounds):
            if number == 0:
                current[0] = gate.try_admit()
            barrier.wait()
            if current[0].release():
                firsts.append(number)
            barrier.wait()

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(firsts) == rounds
    assert gate.in_flight == 0


def main() -> None:
    """Storm, and say whether it was one."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    sys.setswitchinterval(1e-5)
    warnings.simplefilter("ignore", ResourceWarning)  # some permits are forgotten on purpose
    storm(rounds)
    release_from_all_sides(rounds // 10)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing tidegate has switched the interpreter lock on"
        print("without an interpreter lock")
    print("calm")


if __name__ == "__main__":
    main()
