"""Made-up meetings in made-up rooms: scripts become sound, slides, a camera's picture, and the truth about them."""
