-- Added to the schema. Cells change all the time, and a new version stays on its page.
ALTER TABLE tallies SET (fillfactor = 50);
CREATE TABLE schema_version (version integer NOT NULL);

-- Store reports that are new, and return them.
INSERT INTO submissions (campaign, report_id, words, plan)
SELECT * FROM unnest($1::integer[], $2::bytea[], $3::bytea[], $4::integer[])
ON CONFLICT DO NOTHING RETURNING plan, words
