"""Reads the operator's configuration: mm2.properties as MM2 itself reads it, plus settings under ``failover.``."""
