"""Campaigns with people as folders: made from a source, asked and told, exported, predicted with and reported."""
