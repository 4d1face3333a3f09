-- Add to the cells of a tally. Cells are locked in the same order in all writers, to avoid deadlocks.
INSERT INTO tallies (form, cell, count)
SELECT CAST($1 AS integer), CAST(key AS integer), CAST(value AS bigint) FROM {json_each}($2) WHERE true ORDER BY 2
ON CONFLICT (form, cell) DO UPDATE SET count = tallies.count + excluded.count

-- Of these ids of reports, one after the other in $2, those that a campaign has, with their reports.
SELECT report_id, form, words FROM submissions WHERE campaign = $1 AND report_id IN (SELECT piece FROM {ids})

-- Store reports of one form, whose ids and words are one after the other in $2 and $4; $5 is the length of one's words.
INSERT INTO submissions (campaign, report_id, form, words)
SELECT CAST($1 AS integer), piece, CAST($3 AS integer),
    substr(CAST($4 AS {bytes}), CAST($5 AS integer) * place + 1, CAST($5 AS integer)) FROM {ids}

-- Remove the reports of a campaign that have these ids, and return them.
DELETE FROM submissions WHERE campaign = $1 AND report_id IN (SELECT piece FROM {ids}) RETURNING form, words

-- Make free invitations from the digests of their codes, one after the other in $2.
INSERT INTO invitations (campaign, digest)
SELECT number, piece FROM campaigns CROSS JOIN {digests} WHERE id = $1 ORDER BY place

-- Of these digests those of free invitations.
SELECT digest FROM invitations WHERE campaign = $1 AND digest IN (SELECT piece FROM {digests})

-- Use up the invitations with these digests.
DELETE FROM invitations WHERE campaign = $1 AND digest IN (SELECT piece FROM {digests})

-- The reports of a campaign after an id, in the order of their ids.
SELECT report_id, forms.id, words FROM submissions JOIN forms ON forms.number = form
WHERE submissions.campaign = (SELECT number FROM campaigns WHERE id = $1) AND report_id > $2
ORDER BY report_id LIMIT $3

-- Close a campaign for good, because its results are published.
UPDATE campaigns SET published = $2, closed = COALESCE(closed, $2) WHERE id = $1

-- Store results, in place of the last ones.
INSERT INTO results (campaign, kind, made, reports, content, publication)
SELECT number, CAST($2 AS text), CAST($3 AS text), CAST($4 AS bigint), CAST($5 AS text), CAST($6 AS text)
FROM campaigns WHERE id = $1
ON CONFLICT (campaign) DO UPDATE SET kind = excluded.kind, made = excluded.made, reports = excluded.reports,
    content = excluded.content, publication = excluded.publication

-- Add to the number of refused reports, unless the campaign was deleted.
INSERT INTO refusals (campaign, reason, count)
SELECT id, CAST($2 AS text), CAST($3 AS bigint) FROM campaigns WHERE id = $1 AND document <> ''
ON CONFLICT (campaign, reason) DO UPDATE SET count = refusals.count + excluded.count

-- Add to the number of reports of one day, unless the campaign was deleted.
INSERT INTO daily_counts (campaign, day, count)
SELECT number, CAST($2 AS text), CAST($3 AS bigint) FROM campaigns WHERE id = $1 AND document <> ''
ON CONFLICT (campaign, day) DO UPDATE SET count = daily_counts.count + excluded.count

-- When a campaign was ended, how many reports are in its tallies, and how many are stored: all as of one moment.
SELECT deleted, (
    SELECT coalesce(sum(count), 0) FROM tallies JOIN forms ON forms.number = form
    WHERE forms.campaign = campaigns.number AND cell = 0
), (SELECT count(*) FROM submissions WHERE campaign = campaigns.number)
FROM campaigns WHERE id = $1
