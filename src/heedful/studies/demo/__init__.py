"""The demo: the main job from start to end, on data made here."""
