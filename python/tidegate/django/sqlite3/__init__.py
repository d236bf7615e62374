"""The engine ``tidegate.django.sqlite3``."""
