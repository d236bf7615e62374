"""What type checkers must refuse: an ignore that hides no error is reported, so each line has to be wrong.

Nobody runs this file; `scripts/check.sh` checks it.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from tidegate import Classifier, Gate, Shed, load
from tidegate.testing import ManualClock

gate = Gate("db", limit=20)

# --- making and changing a gate ---
Gate("db", controller="best")  # type: ignore[arg-type]
Gate("db", 20, signals=["cpu"])  # type: ignore[list-item]
Gate("db", "20")  # type: ignore[arg-type]
Gate("db", 2.5)  # type: ignore[arg-type]
Gate("db", 20, {"sheddable": 0.5})  # type: ignore[call-arg, arg-type]  # keyword only
Gate("db", 20, thresholds={"sheddible": 0.5})  # type: ignore[dict-item]
Gate("db", 20, thresholds={"sheddable": "half"})  # type: ignore[dict-item]
Gate("db", 20, thresholds={"sheddable": {"keep": 5}})  # type: ignore[dict-item]
Gate("db", 20, outcomes={TimeoutError: "failure"})  # type: ignore[dict-item]
Gate("db", 20, outcomes={"TimeoutError": "overload"})  # type: ignore[dict-item]
Gate("db", 20, default_priority="high")  # type: ignore[arg-type]
Gate("db", 20, clock=ManualClock)  # type: ignore[arg-type]
gate.limit = 30  # type: ignore[misc]  # set_limit
gate.set_limit("30")  # type: ignore[arg-type]
gate.drain(timeout="1")  # type: ignore[arg-type]

# --- admission ---
gate.admit("sheddable")  # type: ignore[call-arg]  # keyword only
gate.admit(priority="low")  # type: ignore[arg-type]
gate.admit(weight=0.5)  # type: ignore[arg-type]
gate.admit().release()  # type: ignore[attr-defined]  # an admission holds nothing before it is entered
gate.try_admit().release()  # type: ignore[union-attr]  # may be None

permit = gate.try_admit()
if permit is not None:
    permit.release("failed")  # type: ignore[arg-type]
    permit.weight = 2  # type: ignore[misc]


# --- classifiers ---
Classifier([{"/": "sheddable"}, "/"])  # type: ignore[list-item]
Classifier(default="high")  # type: ignore[arg-type]
Classifier([], "critical")  # type: ignore[call-arg]  # keyword only
Classifier(essential=[{"path": 7}])  # type: ignore[dict-item]
Classifier().classify({"path": 7})  # type: ignore[dict-item]
Classifier().explain("/")  # type: ignore[arg-type]


# --- events ---
gate.subscribe()  # type: ignore[call-arg]
gate.subscribe(print, events="sheds")  # type: ignore[arg-type]
gate.subscribe(print, events=["shed", "Limit"])  # type: ignore[list-item]
gate.subscribe(lambda: None)  # type: ignore[arg-type, misc]


# --- files ---
load(3)  # type: ignore[arg-type]
load("f.toml", outcomes={"db": {TimeoutError: "bad"}})  # type: ignore[dict-item]
load("f.toml")["db"] = gate  # type: ignore[index]
load("f.toml").reload().gate  # type: ignore[attr-defined]  # noqa: B018


# --- guard ---
@gate.guard
def guarded(key: int) -> str:
    return str(key)


@gate.guard(priority="sheddable")
async def guarded_coroutine(key: int) -> str:
    return str(key)


guarded("1")  # type: ignore[arg-type]
guarded()  # type: ignore[call-arg]
gate.guard(1)  # type: ignore[call-overload]
gate.guard("sheddable")  # type: ignore[call-overload]


async def awaits() -> None:
    number: int = await guarded_coroutine(1)  # type: ignore[assignment]
    await guarded(1)  # type: ignore[misc]
    with await gate.admit() as admitted:
        admitted.limit  # type: ignore[attr-defined]  # noqa: B018
    await gate.drain()  # type: ignore[misc]
    guarded(number)


# --- sheds ---
def sheds(shed: Shed) -> None:
    seconds: float = shed.retry_after  # type: ignore[assignment]  # None is unknown
    shed.reason = "limit"  # type: ignore[misc, assignment]
    print(seconds)


class MyGate(Gate):  # type: ignore[misc]  # final
    pass
