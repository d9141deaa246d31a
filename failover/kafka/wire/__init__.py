"""Raw connections to Kafka: many partitions in one request, bytes left as they are, nothing created by asking.

``WireCluster`` is one cluster; ``windows``, ``columns``, ``groups``, ``offsets``, ``logs`` and ``transactions``
hold what one can ask it. ``WireThread`` runs it for synchronous callers. Brokers from Kafka 2.4 on are supported.
"""
