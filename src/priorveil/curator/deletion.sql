-- End a campaign for good, before its reports are deleted: no later report is stored. $3 is its document, empty if the
-- whole campaign goes.
UPDATE campaigns SET closed = COALESCE(closed, $2), deleted = COALESCE(deleted, $2), document = COALESCE($3, document)
WHERE id = $1 AND document <> ''
RETURNING (
    SELECT CAST(COALESCE(sum(count), 0) AS bigint) FROM tallies JOIN forms ON forms.number = form
    WHERE forms.campaign = campaigns.number AND cell = 0
)

-- Ended campaigns of which something is left to delete.
SELECT number FROM campaigns WHERE deleted IS NOT NULL AND (
    EXISTS (SELECT 1 FROM submissions WHERE campaign = number)
    OR EXISTS (SELECT 1 FROM invitations WHERE campaign = number)
    OR (document = '' AND EXISTS (SELECT 1 FROM forms WHERE campaign = campaigns.number))
    OR (document = '' AND EXISTS (SELECT 1 FROM daily_counts WHERE campaign = number))
    OR (document = '' AND EXISTS (SELECT 1 FROM results WHERE campaign = number))
)

-- Delete some of the reports of a campaign.
DELETE FROM submissions WHERE campaign = $1 AND report_id IN (
    SELECT report_id FROM submissions WHERE campaign = $1 ORDER BY report_id LIMIT $2
)

-- Delete what else is left: of a campaign without a document everything, of others their invitations.
DELETE FROM invitations WHERE campaign = $1;
DELETE FROM tallies WHERE form IN (
    SELECT forms.number FROM forms JOIN campaigns ON campaigns.number = campaign WHERE campaign = $1 AND document = ''
);
DELETE FROM refusals WHERE campaign = (SELECT id FROM campaigns WHERE number = $1 AND document = '');
DELETE FROM daily_counts WHERE campaign = (SELECT number FROM campaigns WHERE number = $1 AND document = '');
DELETE FROM results WHERE campaign = (SELECT number FROM campaigns WHERE number = $1 AND document = '');
DELETE FROM forms WHERE campaign = (SELECT number FROM campaigns WHERE number = $1 AND document = '')
