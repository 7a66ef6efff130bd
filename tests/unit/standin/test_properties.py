"""The stand-in's reading of inputs: pure functions, no plugin process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import standin
from standin.changes import changes, previewed, top
from standin.inputs import checked
from standin.wire import UNKNOWN, Properties, is_secret, read, revealed, secret, write

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**50), 2**50) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | inner.map(secret),
    max_leaves=8,
)
PROPERTIES = st.dictionaries(st.text(), VALUES)


@given(PROPERTIES)
def test_properties_survive_the_wire(properties: Properties) -> None:
    assert read(write(properties)) == properties


def test_null_properties_vanish_but_null_elements_stay() -> None:
    assert read(write({"stdin": None, "triggers": [None, 1]})) == {"triggers": [None, 1]}


def test_a_secret_is_marked_once() -> None:
    assert secret(secret("a")) == secret("a")
    assert is_secret(secret("a"))
    assert not is_secret("a")
    assert not is_secret({"value": "a"})


def test_revealing_reaches_every_depth() -> None:
    hidden = secret({"a": [secret("b"), {"c": secret(1)}]})
    assert revealed(hidden) == {"a": ["b", {"c": 1}]}


@given(PROPERTIES)
def test_nothing_differs_from_itself(properties: Properties) -> None:
    declared = {key: value for key, value in properties.items() if not key.startswith("__")}
    declared.pop("version", None)
    assert changes(declared, declared) == {}


@given(PROPERTIES, PROPERTIES)
def test_a_difference_is_found_from_both_sides(one: Properties, other: Properties) -> None:
    one, other = ({f"k{key}": value for key, value in each.items()} for each in (one, other))
    assert changes(one, other).keys() == changes(other, one).keys()
    assert bool(changes(one, other)) == (one != other)


def test_a_secret_is_compared_as_a_whole() -> None:
    old, new = secret({"host": "a", "port": 1}), secret({"host": "b", "port": 1})
    assert changes({"connection": old}, {"connection": new}) == {"connection": "UPDATE"}


def test_a_path_begins_with_its_property() -> None:
    paths = ["stdin", "environment.A", 'environment["B.C"]', "triggers[0].a"]
    assert [top(path) for path in paths] == ["stdin", "environment", "environment", "triggers"]


def test_defaults_are_not_filled_in_where_something_is_wrong() -> None:
    inputs, wrong = checked({"connection": {"port": 22}})
    assert [failure.field for failure in wrong] == ["connection"]
    assert revealed(inputs) == {"connection": {"port": 22}}


def test_an_unknown_connection_is_not_wrong() -> None:
    assert checked({"connection": UNKNOWN}) == ({"connection": secret(UNKNOWN)}, [])


def test_a_preview_keeps_the_results_of_a_command_that_will_not_run() -> None:
    state = {"create": "a", "stdout": "out", "stderr": "err"}
    assert previewed({"create": "a"}, state) == state
    assert previewed({"create": "b"}, state)["stdout"] == UNKNOWN
    assert previewed({}, state)["stdout"] == UNKNOWN


def test_nothing_slow_is_imported_before_a_command_runs() -> None:
    program = "import sys, standin.provider; print({'pulumi', 'asyncssh'} & set(sys.modules))"
    dev = Path(standin.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=dev, capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
