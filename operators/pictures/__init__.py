"""From pictures to slides and camera features."""
