"""Drawing: functions and classes that turn entries into lines, without touching a store."""
