"""Everything before Kafka: readers of files, the publisher, rooms and their acoustics."""
