"""Tables in files, streams and frames: read in batches, twice if need be."""
