"""Who answers: the simulated truth, a noisy annotator, or people."""
