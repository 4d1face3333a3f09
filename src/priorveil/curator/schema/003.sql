-- About how many reports came on each day in UTC. It changes at intervals, never in the transaction of a report, which would
-- tell the day of that report.
CREATE TABLE daily_counts (
    campaign integer NOT NULL, day text NOT NULL, count bigint NOT NULL, PRIMARY KEY (campaign, day)
) {cell_options};

-- The last stored results of each campaign, which analysts see: why they were made ('closed', 'released' or 'published'),
-- when, from how many reports, and the tallies and counters of that moment as JSON. `publication` is what everybody may read.
CREATE TABLE results (
    campaign integer PRIMARY KEY, kind text NOT NULL, made text NOT NULL, reports bigint NOT NULL, content text NOT NULL,
    publication text
);
