"""The engine ``tidegate.django.postgresql``."""
