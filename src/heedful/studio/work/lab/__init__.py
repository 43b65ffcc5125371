"""What the page Lab computes: one module per topic, each with `play(settings, models, report)`.

`play` runs the topic's own function of `heedful.lab` with what was dragged and slid, and adds what the
figures show.
"""
