"""Contrastive coders: SimCLR and CSI, trained once per campaign on the whole pool, without labels (METHOD 3)."""
