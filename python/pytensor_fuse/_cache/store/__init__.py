"""The stores of the cache, memory and disk, and the entries that they hold."""
