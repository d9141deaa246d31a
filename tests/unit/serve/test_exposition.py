"""The text format, read back by Prometheus' own parser."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from failover.serve.exposition import Page, labels


def read(page: Page) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(page.render())
    }


@given(st.text(), st.floats() | st.integers(-(2**53), 2**53))
def test_any_label_and_number_comes_back(value: str, number: float) -> None:
    page = Page()
    page.add("a", "gauge", "A.", [(labels({"x": value}), number)])
    ((found, back),) = read(page)["a"]
    assert found == {"x": value}
    assert back == number or (math.isnan(number) and math.isnan(back))


def test_a_name_that_is_no_utf8_does_not_cost_the_page() -> None:
    page = Page()
    page.add("a", "gauge", "A.", [(labels({"x": "group\udcff"}), 1)])
    assert page.render().encode()
    assert read(page) == {"a": [({"x": "group\\udcff"}, 1)]}


def test_samples_of_a_name_stay_together_and_empty_ones_are_left_out() -> None:
    page = Page()
    page.add("a", "counter", "A.", [(labels({"x": 1}), 1)])
    page.add("b", "gauge", "B.", [])
    page.add("c", "gauge", "C.", [("", math.inf)])
    page.add("a", "counter", "A.", [(labels({"x": 2}), 2)])
    assert page.render() == (
        '# HELP a A.\n# TYPE a counter\na{x="1"} 1\na{x="2"} 2\n# HELP c C.\n# TYPE c gauge\nc +Inf\n'
    )
