"""The only package with Kafka clients: one port, its librdkafka implementation, and the raw protocol."""
