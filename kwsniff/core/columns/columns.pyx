# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Growing column buffers, in the memory layout of Arrow, that tables/ turns into Arrow arrays without a copy.

Rules
  1. A row is begun (room is made in every column, all values zero and valid), filled, and ended; a row that is not
     ended leaves no trace but zeroes. Memory refused at the beginning costs that row, not the run.
  2. Strings are dictionary-coded as they come in: a row costs a hash and a compare, not a copy. Entries are the
     wire's bytes; what is not UTF-8 becomes U+FFFD when the table is taken, as Kafka itself reads it.
  3. Taking a table hands its memory over and empties it, dictionaries included: nothing grows with the run.
  4. A text that is in one place of a message and in many rows is hashed once (`hold_texts`).
  5. What waits is counted in bytes (`filled`). Once it is enough, the reader of the capture has it taken between two
     calls; a call that has still more loses long texts, which are null and counted in `refused`.

    values    | v0 | v1 | v2 | ...          validity  bit i of byte i/8, least significant first: 1 = there is a value
    string    int32 index per row -> ends[index] .. ends[index + 1] of bytes
    strings   list_ends[row] .. list_ends[row + 1] of the indices
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from kwsniff.core.declared cimport NUM_TABLES
from kwsniff.core.columns.buffer_pool cimport hand_over, leave_spares, start_spares
from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw, contents, release, reserve
from kwsniff.core.bytes.hash cimport hash_span
from kwsniff.core.bytes.span cimport Span, drop, keep, same_bytes

import os

from kwsniff.core.declared import COLUMNS, INNER_COLUMNS

cdef enum:
    ROOM_AT_FIRST = 64
    ROOM_STEP = 1024            # rows: their zeroes are still in the cache when the values come
    MANY_ROWS = 4096            # a table that had this number gets room for as many again
    ENTRY_BYTES = 20            # of a dictionary, beside the text
    SHORT_TEXT = 256            # texts up to this are never left out

# Per process: who writes a capture cannot choose texts that share a slot. It orders nothing.
cdef uint64_t hash_seed = int.from_bytes(os.urandom(8))

cdef dict KINDS = {
    "int64": (<int>COLUMN_INT64, 8), "time": (<int>COLUMN_TIME, 8), "int32": (<int>COLUMN_INT32, 4),
    "int16": (<int>COLUMN_INT16, 2), "api_name": (<int>COLUMN_INT16, 2), "enum": (<int>COLUMN_ENUM, 1), "bool": (<int>COLUMN_BOOL, 0),
    "string": (<int>COLUMN_STRING, 4), "binary": (<int>COLUMN_STRING, 4), "strings": (<int>COLUMN_STRINGS, 4),
}


cdef bint start_tables(Table* tables):
    cdef int i, j
    cdef Column* column
    cdef Spares* spares
    memset(tables, 0, NUM_TABLES * sizeof(Table))
    spares = start_spares()
    if spares == NULL:
        return False
    for i in range(<int>NUM_TABLES):
        tables[i].spares = spares
    set_enough(tables, 0)
    for i, specs in enumerate((*COLUMNS.values(), *INNER_COLUMNS.values())):
        tables[i].columns = <Column*>calloc(len(specs), sizeof(Column))
        if tables[i].columns == NULL:
            return False
        tables[i].num_columns = len(specs)
        tables[i].wanted = True
        tables[i].generation = 1
        for j, (_, kind, _nullable) in enumerate(specs):
            column = &tables[i].columns[j]
            column.kind, column.width = KINDS[kind.partition(":")[0]]
    return True


cdef void set_enough(Table* tables, int64_t enough) noexcept nogil:
    """When tables are to be taken: at `enough` bytes; never where it is 0."""
    tables[0].spares.enough = enough if enough else 0x7FFFFFFFFFFFFFFF
    tables[0].spares.most = 2 * enough if enough else 0x7FFFFFFFFFFFFFFF
    if enough:
        tables[0].spares.most_waiting = 2 * enough  # of room, of which half is written


cdef inline void fill(Table* table, int64_t num) noexcept nogil:
    table.filled += num
    table.spares.filled += num


cdef void free_dictionary(Dictionary* dictionary) noexcept nogil:
    release(&dictionary.bytes)
    release(&dictionary.ends)
    free(dictionary.slots)
    memset(dictionary, 0, sizeof(Dictionary))


cdef void free_column(Column* column) noexcept nogil:
    release(&column.values)
    release(&column.validity)
    release(&column.list_ends)
    free_dictionary(&column.dictionary)


cdef void free_tables(Table* tables) noexcept nogil:
    cdef int i, j
    leave_spares(tables[0].spares)
    for i in range(<int>NUM_TABLES):
        tables[i].spares = NULL
        for j in range(tables[i].num_columns):
            free_column(&tables[i].columns[j])
        release(&tables[i].order)
        free(tables[i].columns)
        tables[i].columns = NULL
        tables[i].num_columns = 0


# -- rows -------------------------------------------------------------------------------------------------------

cdef bint grow_to(Buffer* buffer, size_t num, int fill) noexcept nogil:
    cdef size_t old = buffer.len
    if num <= old:
        return True
    if not reserve(buffer, num - old):
        return False
    memset(buffer.data + old, fill, num - old)
    buffer.len = num
    return True


cdef bint make_room(Table* table, int64_t rows) noexcept nogil:
    cdef int i
    cdef int64_t width = 0
    cdef Column* column
    cdef size_t bits = <size_t>(rows + 7) >> 3
    cdef bint ok = True
    for i in range(table.num_columns):
        column = &table.columns[i]
        ok = ok and grow_to(&column.validity, bits, 0xFF)
        width += <int64_t>column.width
        if column.kind == COLUMN_BOOL:
            ok = ok and grow_to(&column.values, bits, 0)
        elif column.kind == COLUMN_STRINGS:
            ok = ok and grow_to(&column.list_ends, <size_t>(rows + 1) * 4, 0)
        else:
            ok = ok and grow_to(&column.values, <size_t>rows * column.width, 0)
    fill(table, (rows - table.room) * width)
    return ok


cdef bint begin_row(Table* table) noexcept nogil:
    """Makes room for one more row; false when memory is refused (the row must not be filled)."""
    cdef int64_t rows
    if not table.wanted:
        return False
    if table.rows < table.room:
        return True
    rows = table.room + (table.room if table.room < ROOM_STEP else ROOM_STEP) if table.room else ROOM_AT_FIRST
    if not make_room(table, rows):
        table.failed = True
        return False
    table.room = rows
    return True


cdef bint grow_slots(Dictionary* dictionary) noexcept nogil:
    cdef uint32_t num_slots = dictionary.num_slots * 2 if dictionary.num_slots else 64
    cdef uint64_t* slots = <uint64_t*>calloc(num_slots, sizeof(uint64_t))
    cdef uint32_t i, slot
    if slots == NULL:
        return False
    for i in range(dictionary.num_slots):
        if dictionary.slots[i]:
            slot = <uint32_t>(dictionary.slots[i] >> 32) & (num_slots - 1)
            while slots[slot]:
                slot = (slot + 1) & (num_slots - 1)
            slots[slot] = dictionary.slots[i]
    free(dictionary.slots)
    dictionary.slots = slots
    dictionary.num_slots = num_slots
    return True


cdef inline Span entry_text(Dictionary* dictionary, uint32_t entry) noexcept nogil:
    cdef int32_t* ends = <int32_t*>dictionary.ends.data
    return keep(drop(contents(&dictionary.bytes), <size_t>ends[entry]), <size_t>(ends[entry + 1] - ends[entry]))


cdef int32_t intern_text(Table* table, Dictionary* dictionary, Span text) noexcept nogil:
    """The entry's number, new or old; -1 when memory is refused, or there is too much of it."""
    cdef uint32_t hash = <uint32_t>hash_span(text, hash_seed)
    cdef uint32_t slot
    cdef uint64_t there
    if dictionary.num * 2 >= dictionary.num_slots and not grow_slots(dictionary):
        return -1
    slot = hash & (dictionary.num_slots - 1)
    while dictionary.slots[slot]:
        there = dictionary.slots[slot]
        if there >> 32 == hash and same_bytes(entry_text(dictionary, <uint32_t>there - 1), text):
            return <int32_t>(<uint32_t>there - 1)
        slot = (slot + 1) & (dictionary.num_slots - 1)
    if not may_add(table, dictionary, text):
        return -1
    return add_text(dictionary, text, hash, slot)


cdef bint may_add(Table* table, Dictionary* dictionary, Span text) noexcept nogil:
    """Charges a new text to the tables. What is not UTF-8 may become three times as long."""
    cdef int64_t cost = <int64_t>text.num
    if not is_ascii(text.at, text.num):
        cost *= 3
    if (text.num > SHORT_TEXT and table.spares.filled + cost > table.spares.most
            or dictionary.bytes.len + text.num > 0x7FFFFFFF):
        table.spares.refused += 1
        return False
    fill(table, cost + ENTRY_BYTES)
    return True


cdef int32_t add_text(Dictionary* dictionary, Span text, uint32_t hash, uint32_t slot) noexcept nogil:
    cdef int32_t end = 0
    if dictionary.num == 0 and not append_raw(&dictionary.ends, &end, 4):
        return -1
    if not (reserve(&dictionary.ends, 4) and append(&dictionary.bytes, text)):
        return -1
    end = <int32_t>dictionary.bytes.len
    append_raw(&dictionary.ends, &end, 4)
    dictionary.num += 1
    dictionary.slots[slot] = <uint64_t>hash << 32 | dictionary.num
    return <int32_t>(dictionary.num - 1)


cdef bint put_text(Table* table, int column, Span text) noexcept nogil:
    """Puts `text`. Whether there is a value now: null when memory is refused."""
    cdef Column* c = &table.columns[column]
    cdef int32_t entry
    cdef bint held = is_held(table, text)
    if held and c.latest_held == table.holds and c.latest.at == text.at and c.latest.num == text.num:
        entry = c.latest_entry
    else:
        entry = intern_text(table, &c.dictionary, text)
    if held:
        c.latest, c.latest_entry, c.latest_held = text, entry, table.holds
    if entry < 0:
        put_null(table, column)
        return False
    (<int32_t*>c.values.data)[table.rows] = entry
    return True


cdef bint add_to_list(Table* table, int column, Span text) noexcept nogil:
    cdef Column* c = &table.columns[column]
    cdef int32_t entry = intern_text(table, &c.dictionary, text)
    table.filled += 4
    table.spares.filled += 4
    return entry >= 0 and append_raw(&c.values, &entry, 4)


cdef void end_list(Table* table, int column, bint valid) noexcept nogil:
    cdef Column* c = &table.columns[column]
    (<int32_t*>c.list_ends.data)[table.rows + 1] = <int32_t>(c.values.len // 4)
    if not valid:
        put_null(table, column)


cdef void note_place(Table* table) noexcept nogil:
    """Before a row is ended: where that is, unless it is where the row before was."""
    cdef const int64_t* place = table.spares.place
    cdef RowsFrom* latest
    cdef RowsFrom new
    if table.order.len:
        latest = <RowsFrom*>(table.order.data + table.order.len - sizeof(RowsFrom))
        if latest.place[0] == place[0] and latest.place[1] == place[1]:
            return
    new.place[0] = place[0]
    new.place[1] = place[1]
    new.row = table.rows
    if append_raw(&table.order, &new, sizeof(RowsFrom)):
        fill(table, sizeof(RowsFrom))
    else:
        table.failed = True


# -- taking -----------------------------------------------------------------------------------------------------

cdef bint is_ascii(const uint8_t* data, size_t num) noexcept nogil:
    cdef uint64_t word
    cdef size_t at = 0
    while num - at >= 8:
        memcpy(&word, data + at, 8)
        if word & <uint64_t>0x8080808080808080:
            return False
        at += 8
    while at < num:
        if data[at] & 0x80:
            return False
        at += 1
    return True


cdef tuple take_dictionary(Spares* spares, Dictionary* dictionary, bint of_texts):
    """(offsets, bytes, number of entries), the bytes in UTF-8 where they are texts; leaves the dictionary empty."""
    cdef uint32_t num = dictionary.num
    cdef int32_t zero = 0
    cdef int32_t end = 0
    cdef uint32_t i
    cdef int32_t* ends
    cdef Buffer clean
    if num == 0 and not append_raw(&dictionary.ends, &zero, 4):
        raise MemoryError
    memset(&clean, 0, sizeof(Buffer))
    if of_texts and not is_ascii(dictionary.bytes.data, dictionary.bytes.len):
        # Rare enough for Python: one object per distinct text, not per row.
        ends = <int32_t*>dictionary.ends.data
        for i in range(num):
            part = (<const char*>dictionary.bytes.data)[end : ends[i + 1]].decode("utf-8", "replace").encode()
            if clean.len + <size_t>len(part) > 0x7FFFFFFF or not append_raw(&clean, <const char*>part, len(part)):
                release(&clean)
                raise MemoryError
            end = ends[i + 1]
            ends[i + 1] = <int32_t>clean.len
        release(&dictionary.bytes)
        dictionary.bytes = clean
    offsets = hand_over(spares, &dictionary.ends, (num + 1) * 4, False)
    data = hand_over(spares, &dictionary.bytes, dictionary.bytes.len, False)
    free_dictionary(dictionary)
    return offsets, data, num


cdef tuple take_column(Spares* spares, Column* column, str kind, int64_t rows):
    cdef int64_t nulls = column.nulls
    cdef size_t bits = <size_t>(rows + 7) >> 3
    cdef bint more = rows >= MANY_ROWS
    validity = hand_over(spares, &column.validity, bits, more) if nulls else None
    column.validity.len = 0
    column.nulls = 0
    head = (kind, rows, nulls, validity)
    if column.kind == COLUMN_BOOL:
        return (*head, hand_over(spares, &column.values, bits, more))
    if column.kind == COLUMN_STRINGS:
        ends = hand_over(spares, &column.list_ends, <size_t>(rows + 1) * 4, more)
        values = hand_over(spares, &column.values, column.values.len, more)
        return (*head, ends, values, *take_dictionary(spares, &column.dictionary, True))
    values = hand_over(spares, &column.values, <size_t>rows * column.width, more)
    if column.kind == COLUMN_STRING:
        return (*head, values, *take_dictionary(spares, &column.dictionary, kind != "binary"))
    return (*head, values)


cdef void clear_table(Table* table) noexcept nogil:
    """Throws the rows away."""
    cdef int i
    for i in range(table.num_columns):
        free_column(&table.columns[i])
        table.columns[i].nulls = 0
    release(&table.order)
    table.generation += 1
    table.rows = 0
    table.room = 0
    table.spares.filled -= table.filled
    table.filled = 0


cdef bytes take_order(Table* table):
    """Where the rows that wait were ended: native int64, three for each RowsFrom. To be asked before they are taken."""
    told = (<const char*>table.order.data)[:table.order.len] if table.order.len else b""
    table.order.len = 0
    return told


cdef object take_table(Table* table, int number):
    cdef int i
    name, specs = (*COLUMNS.items(), *INNER_COLUMNS.items())[number]
    if table.room == 0 and not make_room(table, 1):
        raise MemoryError
    if table.failed:
        raise MemoryError(f"rows of {name} were lost")
    table.generation += 1
    table.spares.filled -= table.filled
    table.filled = 0
    rows, table.rows, table.room = table.rows, 0, 0     # first: a column that memory is refused for is gone already
    return [take_column(table.spares, &table.columns[i], specs[i][1], rows) for i in range(table.num_columns)]
