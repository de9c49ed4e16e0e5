"""Growing Arrow buffers, and the closed lists whose words they hold."""
