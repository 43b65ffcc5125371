"""How each suite's operations are found in a student's file: names, signatures and conventions."""
