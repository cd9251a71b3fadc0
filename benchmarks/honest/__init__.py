"""Do intervals cover, from a hundred rows to a million? On real tables and where f is known."""
