"""Codecs, one file each: stateless compressors of a group of tensors."""
