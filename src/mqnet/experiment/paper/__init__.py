"""The paper's tables and figures as a button: what each compares, at which scale, and what the paper reports."""
