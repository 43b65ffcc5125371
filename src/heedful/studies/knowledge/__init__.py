"""Knowledge: what does a model know?"""
