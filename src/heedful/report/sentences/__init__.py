"""What a report says in words: of a run, of several, of comparisons. The numbers come from elsewhere."""
