-- Store reports that are new, and return them.
INSERT INTO submissions (campaign, report_id, words, form)
SELECT * FROM unnest($1::integer[], $2::bytea[], $3::bytea[], $4::integer[])
ON CONFLICT DO NOTHING RETURNING form, words
