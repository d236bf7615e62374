"""One permit for all that a request does: holds that join it, and the marks that say whose it is."""

import asyncio
import gc
import threading
from weakref import ref

import pytest
from gatekit import assert_at_rest, in_child, in_thread, released, together, until
from tidegate import Gate, Permit, Shed
from tidegate._held import check_out, joined, marked, marks
from tidegate._native import Hold

GATE_LIMIT = 3


@pytest.fixture
def gate() -> Gate:
    return Gate("db", limit=GATE_LIMIT)


def test_the_permit_goes_with_the_last_hold(gate: Gate) -> None:
    edge = Hold.enter(gate, weight=2)
    pool = edge.join()
    assert gate.in_flight == 2
    assert edge.leave()
    assert not edge.leave()
    assert gate.in_flight == 2
    assert pool.leave()
    assert pool.join() is None
    assert edge.released
    assert_at_rest(gate)


@pytest.mark.parametrize(
    ("outcomes", "gravest"),
    [
        (("ignore", "ignore"), "ignore"),
        (("success", "ignore"), "success"),
        (("ignore", "success"), "success"),
        (("overload", "success"), "overload"),
        (("ignore", "overload"), "overload"),
    ],
)
def test_the_gravest_outcome_counts(gate: Gate, outcomes: tuple[str, str], gravest: str) -> None:
    first = Hold.enter(gate)
    for hold, outcome in zip([first, first.join()], outcomes, strict=True):
        hold.leave(outcome)
    assert released(gate.stats()) == {gravest: 1}


def test_an_exception_tells_the_outcome(gate: Gate) -> None:
    for error in (None, TimeoutError(), KeyboardInterrupt()):
        Hold.enter(gate).end(error)
    with pytest.raises(ValueError, match="a bug"), Hold.enter(gate) as hold:
        assert isinstance(hold.permit, Permit)
        raise ValueError("a bug")
    assert released(gate.stats()) == {"success": 2, "overload": 1, "ignore": 1}
    assert_at_rest(gate)


def test_a_bad_outcome_changes_nothing(gate: Gate) -> None:
    hold = Hold.enter(gate)
    with pytest.raises(ValueError, match="outcome"):
        hold.leave("fine")
    assert gate.in_flight == 1
    assert hold.leave()


def test_a_full_gate_sheds(gate: Gate) -> None:
    with pytest.raises(Shed) as caught:
        Hold.enter(gate, weight=GATE_LIMIT + 1)
    assert caught.value.gate == "db"
    assert_at_rest(gate)


def test_a_hold_that_is_forgotten_gives_way(gate: Gate) -> None:
    edge = Hold.enter(gate)
    forgotten = edge.join()
    assert forgotten is not None
    del forgotten
    edge.leave()
    assert_at_rest(gate)
    with pytest.warns(ResourceWarning, match="collected without release"):
        Hold.enter(gate)
        gc.collect()
    assert gate.in_flight == 0
    assert gate.stats().collected == 1


def test_many_threads_join_and_leave(gate: Gate) -> None:
    def storm() -> None:
        for _ in range(2_000):
            try:
                first = Hold.enter(gate)
            except Shed:
                continue
            with marked(first):
                further = [joined(gate) for _ in range(3)]
                first.leave()
                assert gate.in_flight >= 1
                for hold in further:
                    hold.leave()
            assert joined(gate) is None

    together(*[storm] * 8)
    assert_at_rest(gate)


def test_holds_race_for_the_end(gate: Gate) -> None:
    """Whoever joins has a permit that is not given back before; who comes too late is told so."""
    for _ in range(60):
        first = Hold.enter(gate)

        def join_and_leave(first: Hold = first) -> None:
            while (further := first.join()) is not None:
                assert gate.in_flight == 1
                further.leave()

        together(first.leave, join_and_leave, join_and_leave)
        assert gate.in_flight == 0
    assert sum(gate.stats().released.values()) == 60


def test_a_mark_reaches_tasks_and_copied_contexts_only(gate: Gate) -> None:
    async def request() -> list[bool]:
        def check() -> bool:
            hold = joined(gate)
            return hold is not None and hold.leave()

        async def check_in_task() -> bool:
            return check()

        with Hold.enter(gate) as hold, marked(hold):
            found = [check(), await asyncio.create_task(check_in_task()), await asyncio.to_thread(check)]
            found.append(await asyncio.get_running_loop().run_in_executor(None, check))
        return [*found, check()]

    assert asyncio.run(request()) == [True, True, True, False, False]
    assert_at_rest(gate)


def test_a_mark_that_outlives_its_permit_is_not_joined(gate: Gate) -> None:
    async def request() -> asyncio.Task[bool]:
        go = asyncio.Event()

        async def background() -> bool:
            await go.wait()
            return joined(gate) is None

        with Hold.enter(gate) as hold, marked(hold):
            task = asyncio.create_task(background())
            await asyncio.sleep(0)
        go.set()
        return await task

    assert asyncio.run(request())


def test_a_mark_ends_with_its_block(gate: Gate) -> None:
    with Hold.enter(gate) as hold:
        with marked(hold), joined(gate):
            pass
        assert joined(gate) is None
    assert_at_rest(gate)


def test_marks_do_not_pile_up(gate: Gate) -> None:
    """In a thread, or a task that never ends, which checks out again and again."""
    for _ in range(10):
        with check_out(gate):
            check_out(gate).leave()
    assert len(marks.get()) <= 2


def test_marks_of_several_gates(gate: Gate) -> None:
    other = Gate("other", limit=1)
    with Hold.enter(gate) as outer, marked(outer), Hold.enter(other) as inner, marked(inner):
        for each in (gate, other):
            with joined(each) as hold:
                assert hold.is_of(each)
                assert each.in_flight == 1
        assert joined(Gate("db", limit=1)) is None  # a name does not make it the same
    assert joined(gate) is joined(other) is None
    for each in (gate, other):
        assert_at_rest(each)


# --- what pool hooks do ------------------------------------------------------------------------


def test_nested_checkouts_take_one_place(gate: Gate) -> None:
    """D32: four holders that ask again are served, and freed once."""
    gate.set_limit(4)
    inside = threading.Barrier(4)

    def request() -> None:
        outer = check_out(gate)
        inside.wait(10)
        inner = check_out(gate)
        assert gate.in_flight == 4
        inside.wait(10)
        outer.leave()  # the other way round than with blocks
        inside.wait(10)
        assert gate.in_flight == 4
        inside.wait(10)
        inner.leave()

    together(*[request] * 4)
    assert gate.stats().high_water == 4
    assert_at_rest(gate)


def test_a_nested_checkout_that_outlives_the_outer_one_can_be_joined(gate: Gate) -> None:
    gate.set_limit(1)
    outer = check_out(gate)
    inner = check_out(gate)
    outer.leave()
    del outer
    gc.collect()
    again = check_out(gate)
    inner.leave()
    del inner
    check_out(gate).leave()
    again.leave()
    assert gate.stats().high_water == 1
    assert_at_rest(gate)


def test_a_mark_does_not_keep_a_lost_hold(gate: Gate) -> None:
    with pytest.warns(ResourceWarning, match="collected without release"):
        check_out(gate)  # nobody keeps it, as when an interrupt comes between the checkout and its use
        gc.collect()
    assert joined(gate) is None
    assert gate.in_flight == 0


def test_a_checkout_that_failed_says_nothing_good(gate: Gate) -> None:
    """A database that refuses every connection at once must not look like a fast one."""
    for error in (ConnectionRefusedError(), TimeoutError(), KeyboardInterrupt()):
        check_out(gate).fail(error)
    assert released(gate.stats()) == {"ignore": 2, "overload": 1}


def test_a_checkout_inside_a_request_is_free(gate: Gate) -> None:
    gate.set_limit(1)
    with Hold.enter(gate) as hold, marked(hold):
        connection = check_out(gate)
        assert gate.in_flight == 1
    assert gate.in_flight == 1, "the connection is still out"
    connection.leave()
    assert_at_rest(gate)


def test_what_a_holder_starts_takes_places_of_its_own(gate: Gate) -> None:
    """A task that keeps a connection (for LISTEN, or a lock) must not let in all that it starts."""

    async def scenario() -> None:
        async def worker() -> None:
            check_out(gate).leave()

        kept = check_out(gate)
        check_out(gate).leave()  # its own second one is free
        assert gate.stats().high_water == 1
        await asyncio.create_task(worker())
        assert gate.stats().high_water == 2
        in_thread(lambda: check_out(gate).leave())
        kept.leave()

    asyncio.run(scenario())
    assert_at_rest(gate)


def test_guard_takes_no_second_place(gate: Gate) -> None:
    """D32: middleware, decorator and pool hook on one request count once for each gate."""
    gate.set_limit(1)

    @gate.guard
    def query() -> int:
        check_out(gate).leave()
        return gate.in_flight

    @gate.guard
    async def query_async() -> int:
        return query()

    with Hold.enter(gate) as hold, marked(hold):
        assert query() == 1
        assert asyncio.run(query_async()) == 1
    assert gate.stats().high_water == 1
    assert_at_rest(gate)


def test_a_task_that_is_gone_is_not_kept_by_its_mark(gate: Gate) -> None:
    async def scenario() -> None:
        async def worker() -> None:
            kept.append(check_out(gate))

        kept: list[Hold] = []
        task = asyncio.create_task(worker())
        gone = ref(task)
        await task
        del task
        await asyncio.sleep(0)
        assert gone() is None
        kept.pop().leave()

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_a_child_joins_nothing_of_its_parents(gate: Gate) -> None:
    with Hold.enter(gate) as hold, marked(hold):

        def child() -> list[object]:
            own = check_out(gate)
            inside = gate.in_flight
            return [joined(gate) is not None, inside, own.leave(), hold.leave(), gate.in_flight]

        assert in_child(child) == [True, 1, True, True, 0]
        assert gate.in_flight == 1
    until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)
