"""The step that puts a meeting's log onto one grid."""
