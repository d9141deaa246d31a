"""Failover and switchover for active-passive Kafka."""
