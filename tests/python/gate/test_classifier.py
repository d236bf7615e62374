"""Rules that tell the priority of a request: the shared vectors, and what is Python's alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tidegate import Classifier, ConfigError, Explanation, Priority

VECTORS = Path(__file__).parents[2] / "vectors" / "classifier.json"
CASES = json.loads(VECTORS.read_text("utf-8"))

REPORTS = {"match": {"method": ["GET", "HEAD"], "path": "/reports/*"}, "priority": "sheddable"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vector(case: dict[str, Any]) -> None:
    if "expect" in case:
        with pytest.raises((TypeError, ConfigError)):
            Classifier(**case["classifier"])
        return
    classifier = Classifier(**case["classifier"])
    for asked in case["cases"]:
        expected = asked["expect"]
        found = classifier.explain(asked["attributes"])
        assert (found.priority, found.rule) == (expected["priority"], expected["rule"]), asked
        assert classifier.classify(asked["attributes"]) == expected["priority"], asked


def test_an_explanation_names_the_rule() -> None:
    classifier = Classifier([{**REPORTS, "name": "reports"}], default="critical")
    found = classifier.explain({"path": "/reports/1", "method": "GET"})
    assert found.priority is Priority.SHEDDABLE
    assert (found.rule, found.name) == (1, "reports")
    assert found.text == 'method = ["GET", "HEAD"], path = "/reports/*"'
    assert str(found) == f'sheddable, by rule 1 "reports": {found.text}'
    assert repr(found) == f"<Explanation: {found}>"
    with pytest.raises(AttributeError):
        found.rule = 2  # type: ignore[misc]

    found = classifier.explain({})
    assert (found.priority, found.rule, found.name, found.text) == (Priority.CRITICAL, None, None, None)
    assert str(found) == "critical, by default: no rule matches"
    assert str(Classifier().explain({})) == "undecided: no rule matches, and there is no default"


def test_what_it_says_of_itself() -> None:
    classifier = Classifier([REPORTS, {"match": {"header.X-Plan": "free"}, "priority": "sheddable"}])
    assert classifier.attributes == ("method", "path", "header.x-plan")
    assert classifier.default is None
    assert repr(classifier) == "<Classifier: 2 rules, no default>"
    assert repr(Classifier([REPORTS], default="essential")) == "<Classifier: 1 rule, default critical>"


def test_the_table_of_a_file() -> None:
    table = tomllib.loads("""
        [classifier]
        default = "critical"

        [[classifier.rules]]
        match = { method = "GET", header.x-plan = "free" }
        priority = "sheddable"
    """)
    classifier = Classifier(**table["classifier"])
    assert classifier.classify({"method": "GET", "header.x-plan": "free"}) is Priority.SHEDDABLE


# --- requests -------------------------------------------------------------------------------------


class Counted(Mapping[str, Any]):
    def __init__(self, values: dict[str, Any]) -> None:
        self.values_, self.asked = values, list[str]()

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("only what a rule asks for is looked up")

    def __len__(self) -> int:
        raise AssertionError("only what a rule asks for is looked up")


def test_any_mapping_is_asked_once_for_what_a_rule_needs() -> None:
    rules = [
        {"match": {"method": "PUT", "tenant": "a"}, "priority": "sheddable"},
        {"match": {"method": "GET", "path": "/a"}, "priority": "sheddable"},
        {"match": {"path": "/b"}, "priority": "critical_plus"},
        {"match": {"client": "*"}, "priority": "critical"},
    ]
    asked = Counted({"method": "GET", "path": "/b"})
    assert Classifier(rules).classify(asked) is Priority.CRITICAL_PLUS
    assert asked.asked == ["method", "path"]
    assert Classifier(rules).classify(MappingProxyType({"path": "/b"})) is Priority.CRITICAL_PLUS
    assert Classifier(rules).classify(Counted({})) is None


def test_none_is_what_a_request_lacks() -> None:
    classifier = Classifier([{"match": {"client": "*"}, "priority": "sheddable"}])
    assert classifier.classify({"client": None}) is None
    assert classifier.classify({"client": ""}) is Priority.SHEDDABLE


def test_a_text_without_utf8_still_matches_a_star() -> None:
    """Such a path comes from a client: it must not be an error, and no way around a rule."""
    classifier = Classifier([REPORTS])
    assert classifier.classify({"method": "GET", "path": "/reports/\udcff"}) is Priority.SHEDDABLE
    assert classifier.classify({"method": "GET", "path": "\udcff"}) is None


@pytest.mark.parametrize("value", [7, b"/a", ["/a"], True])
def test_a_value_that_is_no_text_is_told(value: Any) -> None:
    classifier = Classifier([{"match": {"path": "/a", "method": "GET"}, "priority": "sheddable"}])
    for ask in (classifier.classify, classifier.explain):
        with pytest.raises(TypeError, match=r"attribute 'path' must be a str or None, got"):
            ask({"path": value})
    assert classifier.classify({"path": "/b", "unasked": value}) is None


@pytest.mark.parametrize("attributes", [None, "path", [("path", "/a")], 7])
def test_what_is_no_mapping_is_told(attributes: Any) -> None:
    with pytest.raises(TypeError, match="attributes must be a mapping"):
        Classifier([REPORTS]).classify(attributes)


def test_what_a_mapping_raises_comes_through() -> None:
    class Broken(Counted):
        def __getitem__(self, name: str) -> Any:
            self.asked.append(name)
            raise LookupError("a bug")

    asked = Broken({})
    with pytest.raises(LookupError, match="a bug"):
        Classifier([REPORTS, {"match": {"x": "y"}, "priority": "critical"}]).classify(asked)
    assert asked.asked == ["method"], "nothing is asked after an error"


# --- rules ----------------------------------------------------------------------------------------


def good(**changed: Any) -> dict[str, Any]:
    return {"match": {"path": "/a"}, "priority": "sheddable", **changed}


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (good(priority="urgent"), ConfigError, "rule 2: priority must be one of critical_plus"),
        (good(priority=7), TypeError, "rule 2: priority must be a str, got 7"),
        ({"match": {"path": "/a"}}, ConfigError, "rule 2: priority is missing"),
        ({"priority": "critical"}, ConfigError, "rule 2: match is missing"),
        (good(match={}), ConfigError, "rule 2: a match must name an attribute"),
        (good(match=["path"]), TypeError, "rule 2: match must be a mapping, got"),
        (good(name=""), ConfigError, "rule 2: name must be 1 to 255 bytes"),
        (good(name=7), TypeError, "rule 2: name must be a str"),
        (good(weight=2), ConfigError, "rule 2: unknown key 'weight'; a rule takes match, priority, name"),
        (
            good(match={"path": 7}),
            TypeError,
            'rule 2: "path": a pattern must be a str or a list of them, got 7',
        ),
        (good(match={"path": ["/", 7]}), TypeError, 'rule 2: "path": a pattern must be a str, got 7'),
        (good(match={"path": []}), ConfigError, 'rule 2: "path": the number of patterns for one attribute'),
        (good(match={"path": "x" * 1025}), ConfigError, 'rule 2: "path": the length of a pattern in bytes'),
        (good(match={"path": "\ud800"}), ConfigError, 'rule 2: "path": a pattern must be one that UTF-8'),
        (good(match={7: "x"}), TypeError, "rule 2: an attribute's name must be a str, got 7"),
        (good(match={"": "x"}), ConfigError, 'rule 2: "": an attribute\'s name must be 1 to 255 bytes'),
        (good(match={"\ud800": "x"}), ConfigError, "rule 2: an attribute's name must be 1 to 255 bytes"),
        (
            good(match={"header.A": "x", "header.a": "y"}),
            ConfigError,
            'rule 2: "header.a": an attribute may stand once',
        ),
        ("rule", TypeError, "rule 2: a rule must be a mapping, got 'rule'"),
    ],
)
def test_a_bad_rule_is_told_by_its_number(rule: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as told:
        Classifier([good(), rule])
    assert type(told.value) is error
    assert str(told.value).startswith(text)


def test_other_bad_arguments_are_told() -> None:
    for rules in ("rules", good(), 7):
        with pytest.raises(TypeError, match="rule must be a list of mappings"):
            Classifier(rules)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="default: priority must be one of"):
        Classifier(default="urgent")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="essential 1: a match must name an attribute"):
        Classifier(essential=[{}])
    with pytest.raises(ConfigError, match="got rules"):
        Classifier([good()], essential=[])
    with pytest.raises(ConfigError, match="the number of rules must be from 0 to 1000, got 1001"):
        Classifier([good()] * 1001)


def test_a_match_that_holds_itself_is_refused() -> None:
    match: dict[str, Any] = {}
    match["a"] = match
    with pytest.raises(ConfigError, match="rule 1: an attribute's name must be 1 to 255 bytes"):
        Classifier([{"match": match, "priority": "critical"}])


def test_it_cannot_be_subclassed_or_changed() -> None:
    for final in (Classifier, Explanation):
        with pytest.raises(TypeError):
            type("Mine", (final,), {})
    with pytest.raises(AttributeError):
        Classifier().default = "critical"  # type: ignore[misc, assignment]
