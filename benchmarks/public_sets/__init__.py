"""Retrieval quality: public questions with known answers, asked of the same store and library people use."""
