-- The tables of the curator. {number}, {bytes}, {options} and {cell_options} differ between SQLite and PostgreSQL.

-- Each campaign and each of its forms has a short number.
CREATE TABLE campaigns (
    number {number} PRIMARY KEY, id text NOT NULL UNIQUE, document text NOT NULL, closed text
);
CREATE TABLE forms (
    number {number} PRIMARY KEY, campaign integer NOT NULL REFERENCES campaigns, id text NOT NULL,
    UNIQUE (campaign, id)
);

-- One row for each submission. There is no serial number and no time, so the order in which people answered is not
-- stored. words holds the words of its reports.
CREATE TABLE submissions (
    campaign integer NOT NULL, report_id {bytes} NOT NULL, form integer NOT NULL, words {bytes} NOT NULL,
    PRIMARY KEY (campaign, report_id)
) {options};

-- One row for each cell of a tally. Cell 0 is the number of submissions, the others are what the form counts.
CREATE TABLE tallies (
    form integer NOT NULL, cell integer NOT NULL, count bigint NOT NULL, PRIMARY KEY (form, cell)
) {cell_options};

-- Refused reports by campaign and reason, and the SHA-256 of every curator token.
CREATE TABLE refusals (
    campaign text NOT NULL, reason text NOT NULL, count bigint NOT NULL, PRIMARY KEY (campaign, reason)
) {options};
CREATE TABLE tokens (digest {bytes} PRIMARY KEY) {options};
