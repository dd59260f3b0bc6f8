"""Pure drawing: functions from data to lines of styled text, without widgets, clock or disk."""
