-- The settings of a connection that writes. Random ids touch a page each: small pages, and a checkpoint that is seldom,
-- keep what is written small.
PRAGMA page_size = 1024;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 64000;
PRAGMA cache_size = -65536;
