"""From sound to utterances."""
