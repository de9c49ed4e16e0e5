"""The filter language: which calls are chosen, by columns of api_calls."""
