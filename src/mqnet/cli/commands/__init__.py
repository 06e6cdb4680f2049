"""The commands, as people see them: each parses, calls one function that does the work, and lets it print.

One file per group of commands; importing it registers them. The work is imported when a command runs.
"""
