"""The results of a sweep as static HTML that opens offline."""
