"""The context of an audit: a graph, how it will run, and what is known of it before it does."""
