"""Where a record's time goes: batches from their producer to their readers and these readers' commits."""
