"""Target models: what is trained on the labels bought, and what every model pass over the pool goes through."""
