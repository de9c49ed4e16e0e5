# cython: language_level=3
# Growing column buffers, in the memory layout of Arrow, that tables/ turns into Arrow arrays without a copy.
# columns.pyx has the rules.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.columns.buffer_pool cimport Spares
from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span

cdef enum ColumnKind:
    COLUMN_INT64 = 0
    COLUMN_TIME = 1
    COLUMN_INT32 = 2
    COLUMN_INT16 = 3
    COLUMN_ENUM = 4
    COLUMN_BOOL = 5
    COLUMN_STRING = 6
    COLUMN_STRINGS = 7

cdef struct Dictionary:
    Buffer bytes            # all entries, one behind the other
    Buffer ends             # int32 per entry: where it ends in bytes; one leading 0
    uint64_t* slots         # hash << 32 | entry number + 1, or 0
    uint32_t num_slots
    uint32_t num

cdef struct Column:
    int kind
    size_t width            # bytes per value; 0 for bits
    Buffer values           # fixed-width values, or int32 dictionary indices
    Buffer validity
    int64_t nulls
    Buffer list_ends        # COLUMN_STRINGS: int32 per row, one leading 0
    Dictionary dictionary
    Span latest           # the text put last while texts were held in place, and its entry
    int32_t latest_entry
    uint32_t latest_held    # which time that was

# Rows from `row` on were ended where `place` said that the capture is.
cdef struct RowsFrom:
    int64_t place[2]
    int64_t row

cdef struct Table:
    Column* columns
    int num_columns
    int64_t rows
    int64_t room            # rows that fit without growing
    uint32_t generation     # counts the times that the table was taken, from 1
    bint wanted             # false: rows are not even begun
    bint failed             # memory was refused: the current row is lost
    int64_t filled          # its share of `spares.filled`
    uint32_t holds          # how often texts were held in place
    bint holding
    Buffer order            # RowsFrom, where rows are to be put in order with those of others
    Spares* spares          # one for all tables

cdef bint start_tables(Table* tables)
cdef void free_tables(Table* tables) noexcept nogil
cdef bint begin_row(Table* table) noexcept nogil
cdef void set_enough(Table* tables, int64_t enough) noexcept nogil
cdef bint put_text(Table* table, int column, Span text) noexcept nogil
cdef bint add_to_list(Table* table, int column, Span text) noexcept nogil
cdef void end_list(Table* table, int column, bint valid) noexcept nogil
cdef void clear_table(Table* table) noexcept nogil
cdef object take_table(Table* table, int number)
cdef bytes take_order(Table* table)
cdef void note_place(Table* table) noexcept nogil

cdef enum:
    WORTH_HOLDING = 64      # bytes; below, a hash costs less, and texts may be written where another one was

cdef inline void hold_texts(Table* table) noexcept nogil:
    """Until they are let go, texts of 64 bytes and more stay where they are: the same place has the same text."""
    table.holds += 1
    table.holding = True

cdef inline void let_texts_go(Table* table) noexcept nogil:
    table.holding = False

cdef inline bint is_held(Table* table, Span text) noexcept nogil:
    return table.holding and text.num >= <size_t>WORTH_HOLDING

cdef inline void put_null(Table* table, int column) noexcept nogil:
    cdef Column* c = &table.columns[column]
    c.nulls += 1
    c.validity.data[table.rows >> 3] &= <uint8_t>~(1 << (table.rows & 7))

cdef inline bint put_string(Table* table, int column, Span text) noexcept nogil:
    """Puts `text`; a span without an address is null. Whether there is a value now."""
    if text.at != NULL:
        return put_text(table, column, text)
    put_null(table, column)
    return False

cdef inline void put_int64(Table* table, int column, int64_t value) noexcept nogil:
    (<int64_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_int32(Table* table, int column, int32_t value) noexcept nogil:
    (<int32_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_int16(Table* table, int column, int16_t value) noexcept nogil:
    (<int16_t*>table.columns[column].values.data)[table.rows] = value

cdef inline void put_enum(Table* table, int column, int value) noexcept nogil:
    (<int8_t*>table.columns[column].values.data)[table.rows] = <int8_t>value

cdef inline void put_bool(Table* table, int column, bint value) noexcept nogil:
    if value:
        table.columns[column].values.data[table.rows >> 3] |= <uint8_t>(1 << (table.rows & 7))

# Where the dictionary of a string column has a text that comes again and again. Good for one generation.
cdef struct TextCache:
    uint32_t generation
    int32_t entry

cdef inline bint put_cached(Table* table, int column, const TextCache* cache) noexcept nogil:
    """Puts the text that the cache was filled with, or nothing where it is not good any more."""
    if cache.generation != table.generation:
        return False
    put_int32(table, column, cache.entry)
    return True

cdef inline void put_again(Table* table, int column, TextCache* cache, Span text) noexcept nogil:
    """Puts a text that is the same as when the cache was filled, or fills it."""
    if not put_cached(table, column, cache) and put_string(table, column, text):
        cache.generation = table.generation
        cache.entry = (<int32_t*>table.columns[column].values.data)[table.rows]

cdef inline void end_row(Table* table) noexcept nogil:
    if table.spares.place != NULL:
        note_place(table)
    table.rows += 1
