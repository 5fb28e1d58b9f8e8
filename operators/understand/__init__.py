"""From utterances to drafts of items."""
