"""The data path from source to target, in MirrorMaker 2's place."""
