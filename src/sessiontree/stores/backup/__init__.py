"""Backups: a folder of content-addressed pieces, with a manifest for each backup."""
