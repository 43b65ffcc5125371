"""The course kit: check what students write against the contracts, and name the mistakes that are known."""
