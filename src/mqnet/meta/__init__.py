"""The meta-query net: a monotone score of purity and informativeness, learned from the answers just bought."""
