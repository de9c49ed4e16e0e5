"""Growing Arrow buffers, and the closed lists whose words stand in them."""
