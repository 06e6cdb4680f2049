"""The labelling web app: it shares a database with the loop, and never imports torch."""
