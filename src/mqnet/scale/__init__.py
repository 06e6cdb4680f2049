"""Where work runs: in this process, or in several side by side."""
