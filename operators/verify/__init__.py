"""What is said must rest on its evidence."""
