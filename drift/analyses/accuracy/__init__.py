"""Accuracy in detail: by domain, after personalisation, for recommendation.

Each file is one analysis of recorded models.
"""
