"""Spans of runs, responses and tool calls for a collector of OpenTelemetry. Imported only if one is configured."""
