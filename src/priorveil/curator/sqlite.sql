-- The settings of a connection that writes. Random ids touch a page each: small pages and rare checkpoints keep the
-- amount of written data small. Deleted rows, such as used codes and withdrawn reports, are overwritten with zeros.
PRAGMA page_size = 1024;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 64000;
PRAGMA cache_size = -65536;
PRAGMA secure_delete = ON;

-- The places in a group of reports whose ids are known. It is one statement for a whole group: Python's lock is
-- released once, not once for each report.
WITH RECURSIVE places (place) AS (SELECT 0 UNION ALL SELECT place + 1 FROM places WHERE place + 1 < :reports)
SELECT json_group_array(place) FROM places WHERE EXISTS (
    SELECT 1 FROM submissions WHERE campaign = :campaign AND report_id = substr(:ids, 16 * place + 1, 16)
)
