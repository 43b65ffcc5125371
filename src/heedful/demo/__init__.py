"""The demo: the main job from start to end, on generated data."""
