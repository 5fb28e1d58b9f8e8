"""The minutes model: what it reads, what it says, how it is trained and released."""
