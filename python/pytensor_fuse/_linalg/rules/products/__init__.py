"""Rules for products and sums of which only some elements, or a thin factor, are needed."""
