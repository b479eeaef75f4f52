"""Drawing on a terminal: functions that turn records into lines, without touching a store."""
