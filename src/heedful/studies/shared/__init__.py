"""What several studies share: how they run, the space they search, arms, tables and sentences."""
