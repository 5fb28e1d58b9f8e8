"""From verified drafts to what is published."""
