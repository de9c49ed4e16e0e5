"""Column buffers to Arrow and parquet; the table schemas, declared once."""
