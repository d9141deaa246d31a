"""MirrorMaker 2's nouns: the formats of its records, its names, its filters. Pure values, one noun a file."""
