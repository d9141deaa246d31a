"""What a running replicator or checkpointer tells over HTTP: metrics, health, and Kafka Connect's REST."""
