"""Where a committed source offset lies on the target, and how that is known: the heart, pure code."""
