-- About how many reports came on each day in UTC. It changes at intervals, never in the transaction of a report, which would
-- tell the day of that report.
CREATE TABLE daily_counts (
    campaign integer NOT NULL, day text NOT NULL, count bigint NOT NULL, PRIMARY KEY (campaign, day)
) {cell_options};
