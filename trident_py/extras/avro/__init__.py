"""Records in Avro, for the Kafka spout."""
