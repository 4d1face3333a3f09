-- The tables of the curator. {number}, {bytes}, {options} and {cell_options} differ between SQLite and PostgreSQL.

-- Each campaign and each of its plans has a short number.
CREATE TABLE campaigns (
    number {number} PRIMARY KEY, id text NOT NULL UNIQUE, document text NOT NULL, closed text
);
CREATE TABLE plans (
    number {number} PRIMARY KEY, campaign integer NOT NULL REFERENCES campaigns, id text NOT NULL,
    UNIQUE (campaign, id)
);

-- One row for each submission. There is no serial number and no time, so the order in which people answered is not
-- stored. words holds the report, packed as 64-bit words.
CREATE TABLE submissions (
    campaign integer NOT NULL, report_id {bytes} NOT NULL, plan integer NOT NULL, words {bytes} NOT NULL,
    PRIMARY KEY (campaign, report_id)
) {options};

-- One row for each cell of a tally. Cell 0 is the number of reports, the others are what the mechanism counts.
CREATE TABLE tallies (
    plan integer NOT NULL, cell integer NOT NULL, count bigint NOT NULL, PRIMARY KEY (plan, cell)
) {cell_options};

-- Refused reports by campaign and reason, and the SHA-256 of every curator token.
CREATE TABLE refusals (
    campaign text NOT NULL, reason text NOT NULL, count bigint NOT NULL, PRIMARY KEY (campaign, reason)
) {options};
CREATE TABLE tokens (digest {bytes} PRIMARY KEY) {options};
