"""Statistics of scores, as numbers: intervals, paired tests, sample sizes, calibration."""
