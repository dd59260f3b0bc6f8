"""What a sweep is made of, as frozen data. Nothing here reads, writes or starts anything."""
