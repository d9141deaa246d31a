from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from failover.translate.sync_rule import translate
from tests.examples import EXAMPLES
from tests.unit.translate.oracle import World, check
from tests.unit.translate.worlds import worlds


def committed(world: World) -> st.SearchStrategy[int]:
    return st.integers(world.source_start, len(world.source))


@settings(max_examples=EXAMPLES)
@given(st.data(), worlds())
def test_syncs_alone_never_pass_the_true_position(data: st.DataObject, world: World) -> None:
    assume(not world.masked())
    upstream = data.draw(committed(world))
    answer = translate(upstream, world.history(), world.bounds(source=data.draw(st.booleans())))
    check(world, answer)
