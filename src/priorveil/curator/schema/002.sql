-- A token has a name, a role and perhaps an end. The tokens of version 1 could do everything.
CREATE TABLE named_tokens (
    digest {bytes} PRIMARY KEY, name text NOT NULL UNIQUE,
    role text NOT NULL CHECK (role IN ('admin', 'analyst', 'collect')), expires text
) {options};
INSERT INTO named_tokens (digest, name, role)
SELECT digest, 'token-' || row_number() OVER (ORDER BY digest), 'admin' FROM tokens;
DROP TABLE tokens;
ALTER TABLE named_tokens RENAME TO tokens;

-- The SHA-256 of every invitation that is free. There is no serial number and no time. The row of a used invitation is
-- deleted in the transaction that stores its report.
CREATE TABLE invitations (
    campaign integer NOT NULL, digest {bytes} NOT NULL, PRIMARY KEY (campaign, digest)
) {options};

-- What the holders of tokens did, when and to how many reports. It has no report ids.
CREATE TABLE records (
    number {number} PRIMARY KEY, at text NOT NULL, who text NOT NULL, action text NOT NULL, campaign text, count bigint
);

-- When the reports of a campaign have to be deleted, and when they were. From then on the campaign takes no reports: the
-- ids that prevent double counting are gone. If the whole campaign was deleted its document is empty, and the row stays,
-- so that its id can never be created again.
ALTER TABLE campaigns ADD COLUMN keep_until text;
ALTER TABLE campaigns ADD COLUMN deleted text;

-- When the results were published. From then on no report comes or goes: two tables that differ by one report reveal that
-- report.
ALTER TABLE campaigns ADD COLUMN published text;
