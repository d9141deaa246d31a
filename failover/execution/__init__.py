"""What writes to the target: commits, journalled before they are sent and read back after."""
