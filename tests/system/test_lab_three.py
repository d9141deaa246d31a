from __future__ import annotations


def test_one_of_three_brokers_may_die(three):
    topic = three.create_topic("a", "spread", 6)
    three.produce("a", topic, 60)
    three.commit("a", "spread-group", {(topic, partition): 3 for partition in range(6)})
    for node in (1, 3):
        three.lab.kill(f"a/{node}")
        three.produce("a", topic, 60)  # waits for new leaders
        three.a.until(lambda: len(three.committed("a", "spread-group")) == 6, what="the group's coordinator moved")
        three.lab.restart(f"a/{node}")
    assert sum(end for _, end in three.ends("a", topic).values()) == 180
