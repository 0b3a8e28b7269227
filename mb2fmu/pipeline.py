"""The way of the data: the only place that composes stages."""
