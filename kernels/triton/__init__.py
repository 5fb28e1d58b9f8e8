"""The operator on a GPU. Imports Triton, so only what runs there may import it."""
