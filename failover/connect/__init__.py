"""Kafka Connect clusters that run MirrorMaker 2's connectors: their REST interface, and what an operator does by it."""
