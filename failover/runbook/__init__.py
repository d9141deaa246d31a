"""Playbooks: steps written down as data, run with a journal, resumed, undone, and rendered for people."""
