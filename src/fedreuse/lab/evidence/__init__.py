"""Evidence: audits and exports of runs, studies, searches and gate studies."""
