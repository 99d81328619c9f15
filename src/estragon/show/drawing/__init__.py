"""Pictures drawn by Python alone: shapes, words, and a match from above."""
