"""All that crosses a process boundary: packets, messages, topics and their schemas.

Imports nothing of the other folders and uses relative imports only, so that the folder can also
be built as a small wheel for downstream programs.
"""
