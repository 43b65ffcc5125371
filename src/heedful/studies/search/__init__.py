"""Search: which settings are best?"""
