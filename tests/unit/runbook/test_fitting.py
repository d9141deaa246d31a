"""Values of variables are held against the steps that may come, and only those."""

from __future__ import annotations

import pytest

from failover.errors import PlaybookInvalid
from failover.runbook.fitting import require_fitting
from failover.runbook.library import find_playbook, shipped
from failover.runbook.parse import parse
from failover.runbook.variables import variables_of

CHAINED = """\
name: chained
description: A step waits for one that a variable decides about.
vars:
  tail: later
steps:
  - {id: back, title: Back, when: {value: "{{ tail }}", differs: later}, uses: manual, with: {instructions: Wait}}
  - {id: fence, title: Fence, when: {value: "{{ steps.back.by }}", differs: ""}, uses: fence}
  - id: tail
    title: Tail
    when: {value: "{{ steps.fence.topics }}", differs: ""}
    uses: tail
    with: {on: source, handle: "{{ tail }}"}
"""


def test_steps_behind_one_that_never_comes_never_come():
    playbook = parse(CHAINED, "chained.yaml")
    require_fitting(playbook, {"tail": "later"})
    require_fitting(playbook, {"tail": "export"})
    with pytest.raises(PlaybookInvalid, match=r"there is no 'expert'; did you mean 'export'\? \(step tail\)"):
        require_fitting(playbook, {"tail": "expert"})


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_playbook_runs_with_the_values_it_has(name):
    playbook = find_playbook(name)
    own = {each.name: "x" for each in playbook.variables if each.required}
    require_fitting(playbook, variables_of(playbook, own))
