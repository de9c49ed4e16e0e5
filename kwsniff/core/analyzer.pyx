# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Capture bytes in, table columns out: the compiled rooms put together behind one class.

Rules
  1. The work on a chunk runs without the interpreter lock; Python is met once per chunk and once per layout.
  2. Nothing that the bytes say raises. What raises: a file that is not a capture, memory that the machine refuses.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memset

from kwsniff.core.declared cimport *
from kwsniff.core.bytes.buffer cimport Buffer, append_raw, release
from kwsniff.core.columns.columns cimport clear_table, start_tables, take_order, take_table
from kwsniff.core.kafka.choices cimport ask_choice, fill_choices
from kwsniff.core.kafka.kafka_connection cimport (
    CONNECTION_WANTED, PROGRAM_ABSENT, PROGRAM_READY, Context, KafkaConnection, Program,
)
from kwsniff.core.kafka.memory_budget cimport keep_within, share_memory
from kwsniff.core.wire.engine cimport program_ops
from kwsniff.core.kafka.dispatch cimport (
    close_kafka, end_all_sealed, end_too_many, forget_sealed, free_context, start_context, take_bytes,
    take_dropped, take_end, take_gap, take_oddity, take_secrets,
)
from kwsniff.core.kafka.call_stalls cimport is_inside, take_stall
from kwsniff.core.kafka.tcp_events cimport take_event
from kwsniff.core.kafka.messages cimport choose_messages
from kwsniff.core.bytes.span cimport Span, drop, make_span
from kwsniff.core.capture.packets cimport (
    FORMAT_PCAP, FORMAT_PCAPNG, NO_TIME, STOP_DAMAGED, STOP_NONE, STOP_NO_MEMORY, STOP_NOT_A_CAPTURE, Reader, Segment,
    bound_reader, count_drops, feed_reader, free_reader, start_reader,
)
from kwsniff.core.capture.samples cimport Sample, Samples, begin_samples, take_sample, tell_samples
from kwsniff.core.capture.capture_stats cimport tell_fragments, tell_packets
from kwsniff.core.tls.keys cimport Keyring
from kwsniff.core.kafka.apis cimport fill_apis
from kwsniff.core.kafka.programs cimport EARLY_ACCESS, NUM_LAYOUTS
from kwsniff.core.rows.parallel cimport tell_learned, tell_names, tell_shares
from kwsniff.core.rows.rows cimport write_anomaly
from kwsniff.core.rows.sink cimport row_sink
from kwsniff.core.rows.in_flight cimport count_waits, list_waits
from kwsniff.core.capture.shuffle_index cimport FED_ALL, FED_SOME, Runs, feed_some, raise_unfed, start_runs
from kwsniff.core.capture.shuffle_windows cimport Window, close_window, look_through
from kwsniff.core.state cimport load_state, save_state
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.connections cimport note_icmp_error
from kwsniff.core.tcp.stream_table cimport PLACE_FIRST, PLACE_LAST, StreamSink, Streams
from kwsniff.core.tcp.events cimport TcpEvent
from kwsniff.core.tcp.holes cimport tell_holes, use_fills
from kwsniff.core.tcp.streams cimport end_streams, free_streams, start_streams, take_segment, take_time

import os
from hashlib import blake2b

from kwsniff.core.capture.packets import LINK_TYPES
from kwsniff.core.declared import COLUMNS, ENUMS, INNER_COLUMNS, TABLES
from kwsniff.core.kafka.products import PROOFS
from kwsniff.errors import CaptureError, UsageError
from kwsniff.limits import Limits

CHECK_BYTES = 16        # in front of a saved state
MOST_BUCKETS = 65536
ENDS = ["truncated", "damaged"]
cdef dict TABLE_NUMBERS = {name: number for number, name in enumerate((*COLUMNS, *INNER_COLUMNS))}


cdef void pass_segment(void* opaque, Segment* segment) noexcept nogil:
    cdef Streams* streams = <Streams*>opaque
    streams.ordinal = streams.frames_before + segment.frame
    streams.place[0] = streams.ordinal
    streams.place[1] = <int64_t>PLACE_FIRST
    if streams.samples != NULL:
        take_sample(streams.samples, segment)
    take_segment(streams, segment)
    if (<Context*>streams.above).sealed.num:
        end_too_many(<Context*>streams.above, segment.time)
    keep_within(streams, <Context*>streams.above, segment)


cdef void pass_time(void* opaque, Segment* segment) noexcept nogil:
    cdef Streams* streams = <Streams*>opaque
    streams.place[0] = streams.frames_before + segment.frame
    if streams.samples != NULL:
        take_sample(streams.samples, segment)
    take_time(streams, segment.time)


cdef void drain_tables(void* owner) noexcept nogil:
    with gil:
        (<Analyzer>owner).call_when_full()


cdef void learn_secrets(void* owner, Span text) noexcept nogil:
    with gil:
        (<Analyzer>owner).learn(text)


cdef void compile_program(void* owner, int key, int version, int direction, Program* program) noexcept nogil:
    with gil:
        (<Analyzer>owner).compile(key, version, direction, program)


cdef int may_choose(void* owner, KafkaConnection* kafka) noexcept nogil:
    with gil:
        try:
            return ask_choice(kafka, (<Analyzer>owner).may_choose)
        except BaseException as error:      # feed() raises it
            (<Analyzer>owner).failure = error
            return CONNECTION_WANTED


cdef int recognise_word(void* owner, int kind, Span word) noexcept nogil:
    with gil:
        try:
            text = (<const char*>word.at)[:word.num].decode("utf-8", "replace") if word.num else ""
            return (<Analyzer>owner).recognise(PROOFS[kind], text)
        except BaseException as error:      # feed() raises it
            (<Analyzer>owner).failure = error
            return 0


cdef void forget_bytes(void* context, Connection* connection, int side, Arrival* arrival, Span data) noexcept nogil:
    pass


cdef void forget_gap(void* context, Connection* connection, int side, Arrival* arrival, int64_t num, int why) noexcept nogil:
    pass


cdef void forget_event(void* context, Connection* connection, TcpEvent* event) noexcept nogil:
    pass


cdef void forget_kafka(void* context, Connection* connection) noexcept nogil:
    if connection.kafka != NULL:
        close_kafka(<Context*>context, <KafkaConnection*>connection.kafka)


cdef class Analyzer:
    """Follows the Kafka calls of any number of captures, one behind the other."""

    cdef Context context
    cdef Streams streams
    cdef Reader reader
    cdef Keyring keyring        # after open_tls()
    cdef object secrets
    cdef object compile_program
    cdef object compile_early
    cdef object recognise       # the number of the product that a word of a response shows
    cdef object may_choose      # by what is known of a connection
    cdef object take_rows       # takes tables off this analyzer, in the middle of its work; or None
    cdef bint draining          # it is doing so
    cdef list programs          # keeps the bytes that the compiled rooms point into
    cdef object failure
    cdef bint reading
    cdef bint in_runs           # feed_runs has more to do, in these two
    cdef Runs runs
    cdef Window window
    cdef Samples samples
    cdef bytes fills            # what the streams fill holes with
    cdef bytes filled
    cdef Py_buffer view
    cdef Py_buffer shared_view
    cdef bint by_runs           # the open capture is read so
    cdef bint finished
    cdef bint busy              # compiled code works without the interpreter lock: other threads may touch nothing

    def __cinit__(self):
        memset(&self.context, 0, sizeof(Context))
        memset(&self.streams, 0, sizeof(Streams))
        memset(&self.reader, 0, sizeof(Reader))
        memset(&self.samples, 0, sizeof(Samples))
        self.programs = []

    def __init__(self, compile_program, api_ranges, *, ports=(), limits=None, messages=False, tables=TABLES,
                 compile_early=None, recognise=None, bucket=None, beside=False, samples=0):
        cdef StreamSink sink
        if self.streams.buckets != NULL:
            raise UsageError("an analyzer is set up once")
        if not start_tables(self.context.tables):
            raise MemoryError
        self.compile_program = compile_program
        self.compile_early = compile_early
        self.set_limits(Limits.with_changes(dict(limits or {})).as_dict())
        self.set_apis(api_ranges, recognise)
        for port in ports:
            if not 0 < port < 65536:
                raise UsageError(f"port {port} is outside 1 to 65535")
            self.context.ports[<int>port >> 3] |= <uint8_t>(1 << (<int>port & 7))
        self.context.keeps_messages = messages
        if bucket is not None:
            number, num_buckets = bucket
            if not 0 <= number < num_buckets or num_buckets > MOST_BUCKETS:
                raise UsageError(f"there is no bucket {number} of {num_buckets}")
            self.context.bucket = number
            self.context.num_buckets = num_buckets
        self.context.since = self.context.until = NO_TIME
        self.want_tables(tables)
        self.context.owner = <void*>self
        self.context.compile = compile_program_hook()
        self.context.rows = row_sink()
        self.context.beside = beside
        share_memory(&self.context, self.take_rows is not None)
        start_context(&self.context, <uint64_t>int.from_bytes(os.urandom(8)))
        sink.context = &self.context
        sink.bytes = take_bytes
        sink.gap = take_gap
        sink.ended = take_end
        sink.dropped = take_dropped
        sink.oddity = take_oddity
        sink.event = take_event
        sink.inside = is_inside
        sink.stall = take_stall
        # The seed keeps a hostile capture from choosing addresses that share one hash bucket; it orders nothing.
        if not start_streams(&self.streams, sink, self.context.limits, <uint64_t>int.from_bytes(os.urandom(8))):
            raise MemoryError
        self.streams.above = &self.context
        if samples > 0:
            self.samples.most = samples * sizeof(Sample)
            self.streams.samples = &self.samples
        if beside:
            self.context.tables[0].spares.place = self.streams.place
            self.context.topic_ids.packet = self.streams.place

    def __dealloc__(self):
        # Calls of connections that were never finished go with their rows unwritten. Nothing may be decoded here:
        # the collector of cycles has taken the programs already.
        if self.streams.buckets != NULL:
            self.streams.sink.context = &self.context
            self.streams.sink.bytes = forget_bytes
            self.streams.sink.gap = forget_gap
            self.streams.sink.ended = forget_kafka
            self.streams.sink.dropped = take_dropped
            self.streams.sink.oddity = take_oddity
            self.streams.sink.event = forget_event
            end_streams(&self.streams)
            free_streams(&self.streams)
        if self.in_runs:
            self.end_runs()
        close_window(&self.window)
        free_reader(&self.reader)
        release(&self.samples.kept)
        forget_sealed(&self.context)
        free_context(&self.context)

    cdef set_limits(self, dict values):
        cdef int64_t* slots = <int64_t*>&self.context.limits
        # The struct's fields have the order of the dataclass's; a test compares their names.
        for number, value in enumerate(values.values()):
            slots[<int>number] = value

    cdef want_tables(self, tables):
        cdef int number
        for name in tables:
            if name not in TABLE_NUMBERS:
                raise UsageError(f"there is no table {name!r}; there are {', '.join(TABLES)}")
        for name, number in TABLE_NUMBERS.items():
            self.context.tables[number].wanted = name in tables
        # Fetch sessions are followed by what is said of partitions, for the sake of the calls themselves.
        self.context.facts.wants_partitions = "partitions" in tables or "api_calls" in tables
        self.context.facts.wants_batches = "record_batches" in tables

    cdef set_apis(self, api_ranges, recognise):
        fill_apis(&self.context.apis, api_ranges)
        if recognise is not None:
            self.recognise = recognise
            self.context.recognise = recognise_word
        self.context.programs = <Program**>calloc(<size_t>(NUM_LAYOUTS * self.context.apis.num + 1), sizeof(Program*))
        if self.context.programs == NULL:
            raise MemoryError

    cdef void compile(self, int key, int version, int direction, Program* program) noexcept:
        cdef bytes code, joined, ends
        cdef list texts
        program.state = PROGRAM_ABSENT
        try:
            if direction < EARLY_ACCESS:
                compiled = self.compile_program(key, version, direction)
            elif self.compile_early is not None:
                compiled = self.compile_early(key, version, direction - EARLY_ACCESS)
            else:
                return
            if compiled is None:
                return
            code, paths = compiled
            texts = [path.encode() for path in paths]
            joined = b"".join(texts)
            at = 0
            places = [0]
            for text in texts:
                at += len(text)
                places.append(at)
            ends = b"".join([place.to_bytes(4, "little") for place in places])
            program.ops = program_ops(<const uint8_t*><const char*>code, len(code), &program.num_ops)
            if program.ops == NULL or program.num_ops != len(paths):
                raise ValueError(f"program of api {key} version {version} is malformed")
            program.paths = <const uint8_t*><const char*>joined
            program.path_ends = <const uint32_t*><const char*>ends
            self.programs.append((code, joined, ends))
            program.state = PROGRAM_READY
        except BaseException as error:  # feed() raises it, Ctrl-C too: this frame of the stack is compiled code's
            self.failure = error

    cdef void call_when_full(self) noexcept:
        cdef int i
        if self.failure is None:
            self.draining = True
            try:
                self.take_rows()
            except BaseException as error:      # feed() raises it
                self.failure = error
            self.draining = False
        if self.failure is not None:            # they will not be taken any more
            for i in range(<int>NUM_TABLES):
                clear_table(&self.context.tables[i])

    cdef int check_idle(self, bint or_draining=False) except -1:
        if self.busy and not (self.draining and or_draining):
            raise UsageError("the analyzer is at work: one thread at a time, and not while it asks for a layout")
        if self.streams.buckets == NULL:
            raise UsageError("the analyzer was never set up: __init__ did not run to its end")
        return 0

    cdef int raise_failure(self) except -1:
        """What failed where nothing can be raised."""
        if self.keyring is not None and self.failure is None:
            self.failure = self.keyring.take_failure()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return 0

    def choose_calls(self, choice):
        """Only calls that `choice` cannot rule out by their headers become rows and messages. Before the first capture."""
        self.check_idle()
        if self.context.choices.some or self.reading or self.streams.frames_before:
            raise UsageError("calls are chosen once, before the first capture")
        fill_choices(&self.context.choices, &self.context.apis, choice)
        self.context.choices.may_choose = may_choose
        self.may_choose = choice.may_choose

    def open_tls(self, secrets):
        """Opens TLS with what `secrets` knows (kwsniff.sources.tls.Secrets, or what does the same): `find` gives keys, see
        keys.Keyring; `take` gets key logs that captures contain; `may_come` says whether more may come while packets
        do. After each time that `secrets` has learned something, `secrets_came()` is to be called."""
        self.check_idle()
        self.secrets = secrets
        self.keyring = Keyring(secrets.find, getattr(secrets, "guess", None))
        self.context.opening.keyring = <void*>self.keyring
        self.context.opening.may_come = secrets.may_come
        self.context.opening.version = secrets.version
        self.reader.take_secrets = learn_secrets
        self.reader.owner = <void*>self
        self.context.opening.most_queued = self.context.limits.tls_buffer_bytes
        self.context.opening.most_tries = self.context.limits.tls_tries
        take_secrets(&self.context, &self.streams)      # of one that was resumed

    cdef void learn(self, Span text) noexcept:
        try:
            self.secrets.add_keylog((<const char*>text.at)[:text.num])
            self.context.opening.version = self.secrets.version
        except BaseException as error:      # feed() raises it
            self.failure = error

    def secrets_came(self):
        """Goes through what waits for secrets again, but not while rows are waited for: then the next time."""
        self.check_idle(True)
        if self.draining or self.keyring is None or self.secrets.version == self.context.opening.version:
            return
        self.context.opening.version = self.secrets.version
        self.busy = True
        with nogil:
            take_secrets(&self.context, &self.streams)
        self.busy = False
        self.raise_failure()

    @property
    def tls_opened(self):
        """How many keys have opened something: two for each connection whose data came both ways, or more."""
        return 0 if self.keyring is None else self.keyring.opened

    def bound(self, since, until):
        """Takes only packets from `since` on and before `until` (nanoseconds or None) of the captures that come."""
        self.check_idle()
        if self.reading:
            raise UsageError("a capture is open; bounds are set between captures")
        self.context.since, self.context.until = [NO_TIME if time is None else time for time in (since, until)]

    def note_holes(self, size_t most):
        """Notes what is missing in streams, in up to `most` bytes."""
        self.check_idle()
        self.streams.most_holes = most

    @property
    def holes(self):
        """Those noted: Hole of tcp/holes.pxd, in the order in which they were given up."""
        self.check_idle(True)
        return tell_holes(&self.streams)

    def fill_holes(self, bytes fills, bytes data):
        """`fills`: Fill of tcp/holes.pxd, sorted, within `data`. Before the first capture."""
        self.check_idle()
        if self.reading or self.streams.frames_before:
            raise UsageError("holes are filled from the first capture on")
        use_fills(&self.streams, fills, data)
        self.fills, self.filled = fills, data

    def open_capture(self, name, *, int64_t place=0):
        """Begins a capture; connections of earlier captures from the same place (a number) continue in it."""
        cdef bytes text
        cdef int64_t end
        cdef int64_t[NUM_BINS] no_bytes
        self.check_idle()
        if self.reading or self.finished:
            raise UsageError("a capture is open already, or the analysis is finished")
        memset(no_bytes, 0, sizeof(no_bytes))
        text = name.encode("utf-8", "surrogateescape")
        if not append_raw(&self.context.capture_names, <const char*>text, len(text)):
            raise MemoryError
        end = <int64_t>self.context.capture_names.len
        if not append_raw(&self.context.capture_name_ends, &end, 8):
            raise MemoryError
        if not append_raw(&self.context.bins, no_bytes, sizeof(no_bytes)):
            raise MemoryError
        self.streams.capture = <int64_t>(self.context.capture_name_ends.len // 8) - 1
        if place != self.streams.seen_at:
            self.streams.seen_at = place
            self.streams.last = NULL
        begin_samples(&self.samples)
        start_reader(&self.reader, pass_segment, &self.streams, <size_t>self.context.limits.packet_bytes,
                     <uint32_t>self.context.limits.interfaces, <uint32_t>self.context.limits.ip_reassembly)
        self.reader.icmp_sink = note_icmp_error
        if self.keyring is not None:
            self.reader.take_secrets = learn_secrets
            self.reader.owner = <void*>self
        self.reader.bucket = self.context.bucket
        self.reader.num_buckets = self.context.num_buckets
        if self.context.beside:
            self.reader.other_sink = pass_time
        bound_reader(&self.reader, self.context.since, self.context.until)
        self.by_runs = False
        self.reading = True

    def feed(self, data, bytes ends=b""):
        """Takes the next bytes of the open capture. Raises CaptureError when it is none. `ends`: native int64, where parts
        of them end; as if these were fed one by one until the analyzer has `stopped`."""
        cdef Py_buffer view
        cdef const int64_t* parts = <const int64_t*><const char*>ends
        cdef int64_t num_parts = len(ends) // 8, begin = 0, i
        self.check_idle()
        if not self.reading or self.by_runs:
            raise UsageError("no capture is open" if not self.reading else "the capture is read by runs")
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        self.busy = True
        try:
            with nogil:
                for i in range(num_parts):
                    if self.reader.stop == STOP_NONE and begin <= parts[i] <= view.len:
                        feed_reader(&self.reader, make_span(<const uint8_t*>view.buf + begin, <size_t>(parts[i] - begin)))
                        begin = parts[i]
                if num_parts == 0:
                    feed_reader(&self.reader, make_span(<const uint8_t*>view.buf, <size_t>view.len))
        finally:
            self.busy = False
            PyBuffer_Release(&view)
        self.raise_failure()
        if self.reader.stop == STOP_NOT_A_CAPTURE:
            self.reading = False
            free_reader(&self.reader)
            raise CaptureError("not a pcap or pcapng capture")
        if self.reader.stop == STOP_NO_MEMORY or self.streams.no_memory:
            raise MemoryError

    def begin_runs(self, own, shared, *, frames_before, int capture=-1):
        """Goes to a part of the open capture, of which the head was fed: `own` and `shared` are what a Router kept of it
        for this bucket and all of them, `frames_before` packets that were before it, `capture` where to read what is named."""
        cdef int64_t before = frames_before
        self.check_idle()
        if not self.reading or self.in_runs or self.reader.carry.len or self.reader.skip:
            raise UsageError("runs begin in an open capture whose head was fed, and end before the next ones begin")
        PyObject_GetBuffer(own, &self.view, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(shared, &self.shared_view, PyBUF_SIMPLE)
        except BaseException:
            PyBuffer_Release(&self.view)
            raise
        self.in_runs = self.by_runs = True
        look_through(&self.window, capture)
        if before < 0 or not start_runs(
                &self.runs, make_span(<const uint8_t*>self.view.buf, <size_t>self.view.len),
                make_span(<const uint8_t*>self.shared_view.buf, <size_t>self.shared_view.len), before,
                self.context.num_buckets):
            self.end_runs()
            raise UsageError("these are not runs of a part of this capture")

    cdef end_runs(self):
        self.in_runs = False
        PyBuffer_Release(&self.view)
        PyBuffer_Release(&self.shared_view)

    def feed_runs(self, uint64_t most=8 << 20):
        """Feeds up to `most` bytes of the runs; whether more of them are left."""
        cdef int fed
        self.check_idle()
        if not self.in_runs:
            return False
        self.busy = True
        with nogil:
            fed = feed_some(&self.runs, &self.reader, &self.window, most if most else 1)
        self.busy = False
        if fed != FED_SOME: self.end_runs()
        self.raise_failure()
        if self.reader.stop == STOP_NO_MEMORY or self.streams.no_memory:
            raise MemoryError
        raise_unfed(fed, &self.window)
        return fed != FED_ALL

    @property
    def bytes_named(self):
        """Bytes that `feed_runs` has read in captures."""
        return self.window.total

    @property
    def stopped(self):
        """Whether the rest of the open capture cannot be read: its record boundaries are lost."""
        return self.reader.stop == STOP_DAMAGED

    @property
    def packets(self):
        """Packets of the open capture so far."""
        return self.reader.frame

    @property
    def unfinished(self):
        """How many of the bytes fed last are the beginning of a packet that is not whole yet; None inside a block that
        is passed over. What came before ends with a whole packet: a capture can be cut there."""
        return None if self.reader.skip else self.reader.carry.len

    def waiting(self):
        """How many requests wait for their response, and since when (nanoseconds, or None) the first one is due."""
        self.check_idle(True)
        return count_waits(self.streams.open.oldest)

    def waits(self, int64_t before, always, int64_t most):
        """Calls without an answer that was due `before` (nanoseconds), and calls of the APIs in `always`, `most` of them at
        most: see rows/in_flight.pyx."""
        self.check_idle(True)
        return list_waits(&self.context, self.streams.open.oldest, before, frozenset(always), most)

    @property
    def times(self):
        """Nanoseconds since the epoch of the open capture's earliest and latest packet, or None."""
        return tuple(None if each == NO_TIME else each for each in (self.reader.first_time, self.reader.last_time))

    def close_capture(self, *, end=None):
        """Ends the open capture and tells what it was: the facts of its row in the captures table. `end`: where runs were
        fed, the `stop` of the last walk; the facts are then to be completed by file_splits.capture_facts."""
        cdef Reader* reader = &self.reader
        cdef bint broken = reader.carry.len > 0 or reader.skip > 0
        cdef bint damaged = reader.stop == STOP_DAMAGED
        self.check_idle()
        if not self.reading:
            raise UsageError("no capture is open")
        if self.in_runs or end is not None and (end not in ENDS or not self.by_runs):
            raise UsageError("runs are left" if self.in_runs else f"no capture that is read so ends {end!r}")
        self.reading = False
        if self.by_runs:
            damaged = end == "damaged"
            broken = end is not None
        if self.context.num_buckets > 1 and reader.tcp_frame:
            self.streams.now = reader.tcp_time
        self.streams.place = [self.streams.frames_before + reader.frame, <int64_t>PLACE_LAST]
        if reader.format not in (FORMAT_PCAP, FORMAT_PCAPNG):
            empty = reader.bytes == 0
            free_reader(reader)
            raise CaptureError("the file is empty" if empty else "not a pcap or pcapng capture")
        if self.context.bucket:
            pass            # once is enough
        elif damaged:
            write_anomaly(&self.context, NULL, -1, NULL, -1, -1, ANOMALY_CAPTURE_DAMAGED, reader.frame)
        elif broken:
            write_anomaly(&self.context, NULL, -1, NULL, -1, -1, ANOMALY_CAPTURE_TRUNCATED, reader.frame)
        if reader.passed_interfaces and not self.context.bucket:
            write_anomaly(&self.context, NULL, -1, NULL, -1, -1, ANOMALY_INTERFACES_LIMIT, reader.passed_interfaces)
        drops = count_drops(reader)
        facts = {
            "format": "pcap" if reader.format == FORMAT_PCAP else "pcapng",
            "byte_order": "big" if reader.swapped else "little",
            "link_types": [
                LINK_TYPES[bit] if bit < len(LINK_TYPES) else "other"
                for bit in range(64) if reader.link_types >> <uint64_t>bit & 1
            ],
            "interfaces": reader.total_interfaces,
            "snaplen": reader.snaplen,
            "bytes": reader.bytes,
            "packets": reader.frame,
            "truncated": broken and not damaged,
            "damaged": damaged,
            "dropped_by_kernel": None if drops < 0 else drops,
            "tcp_payload_bytes": reader.payload_bytes,
        }
        facts |= tell_packets(reader)
        if self.by_runs:
            facts["fragments"] = tell_fragments(reader)
        self.streams.frames_before += reader.frame
        free_reader(reader)
        return facts

    @property
    def samples(self):
        """Of the capture opened last, as many packets as `samples` asked for at most: see capture/samples.pxd."""
        return tell_samples(&self.samples)

    @property
    def when_full(self):
        """Called in the middle of `feed`, `feed_runs` and `finish`, between two calls, once as many rows wait as
        `--limit memory` gives them room for, to take them; with None they wait until they are taken."""
        return self.take_rows

    @when_full.setter
    def when_full(self, take_rows):
        self.take_rows = take_rows
        if take_rows is not None:
            self.context.drain = drain_tables
        else:
            self.context.drain = NULL
        share_memory(&self.context, self.take_rows is not None)

    @property
    def is_full(self):
        """Whether the rows that wait are as many as `--limit memory` gives them room for: they are to be taken."""
        return self.context.tables[0].spares.filled >= self.context.tables[0].spares.enough

    def drain_messages(self, ended, *, alone=True, most=None):
        """The messages of calls that are over, in the order they were completed, as dicts: their bytes (header and body,
        without the size) and their positions. Only with messages=True. `ended`: two native int64 for each such call, its
        number and whether it is wanted (0 or 1). `alone`: messages of no call, too. The oldest that wait are handed out beyond `most` bytes (None: none wait)."""
        self.check_idle()
        return choose_messages(&self.context.messages, bytes(ended), alone, most or 0)

    def accounting(self, capture):
        """Payload bytes of capture number `capture` (in the order they were opened) per bin of ENUMS["bin"]. After
        finish() they add up to the capture's tcp_payload_bytes."""
        if not 0 <= capture < self.context.capture_name_ends.len // 8:
            raise UsageError(f"there is no capture number {capture}")
        bins = <int64_t*>self.context.bins.data
        return {name: bins[<int64_t>capture * NUM_BINS + number] for number, name in enumerate(ENUMS["bin"])}

    def late_topics(self):
        """Topic ids (22 characters) that rows show because no message had named them yet, and the names that later
        messages gave them."""
        self.check_idle(True)
        return tell_names(&self.context.topic_ids, True)

    def topic_names(self):
        """Every topic id (22 characters) that a message named so far, and its name."""
        self.check_idle()
        return tell_names(&self.context.topic_ids, False)

    def finish(self):
        """Every connection still open ends as such; every waiting call becomes a row. Nothing can follow."""
        self.check_idle()
        if self.reading:
            raise UsageError("a capture is still open")
        if not self.finished:
            self.finished = self.busy = self.context.closing = True
            with nogil:
                end_streams(&self.streams)
                end_all_sealed(&self.context)
            self.busy = False
            self.raise_failure()

    def save(self, *, bint ended=True):
        """The state of the analysis as bytes, at any point between two feeds. The tables must have been taken, and
        messages too: a state holds what is unfinished, not results. `ended`: connections that have ended as well, of which
        only late packets matter."""
        cdef Buffer out
        self.check_idle()
        if self.in_runs:
            raise UsageError("feed the runs to their end before saving the state")
        if self.context.messages.len or any(self.context.tables[<int>i].rows for i in range(<int>NUM_TABLES)):
            raise UsageError("take the tables and messages before saving the state")
        memset(&out, 0, sizeof(Buffer))
        try:
            if not save_state(&out, &self.context, &self.streams, &self.reader, ended):
                raise MemoryError
            body = bytes((self.reading, self.finished, self.by_runs)) + (<const char*>out.data)[:out.len]
            return blake2b(body, digest_size=CHECK_BYTES).digest() + body
        finally:
            release(&out)

    @classmethod
    def resume(cls, compile_program, api_ranges, state, *, compile_early=None, recognise=None, tables=TABLES):
        """An Analyzer that continues where the saved one was: with its limits, ports and open capture. Raises
        UsageError for a state of another build or of other layouts, and for a damaged one. A state is trusted like the program itself: its
        check tells accidents, not forgeries."""
        cdef Analyzer analyzer = cls(compile_program, api_ranges, compile_early=compile_early, recognise=recognise, tables=tables)
        cdef bytes data = bytes(state)[CHECK_BYTES:]
        start_reader(&analyzer.reader, pass_segment, &analyzer.streams, 0, 0, 0)
        analyzer.reader.icmp_sink = note_icmp_error
        check = blake2b(data, digest_size=CHECK_BYTES).digest()
        if check != bytes(state)[:CHECK_BYTES] or len(data) < 3 or not load_state(
                drop(make_span(<const uint8_t*><const char*>data, len(data)), 3), &analyzer.context,
                &analyzer.streams, &analyzer.reader):
            raise UsageError(
                "not a state of this build of kwsniff with these layouts; analyze the captures again from the start")
        share_memory(&analyzer.context, False)
        analyzer.streams.limits = analyzer.context.limits
        analyzer.streams.above = &analyzer.context
        analyzer.reading = data[0]
        analyzer.finished = data[1]
        analyzer.by_runs = data[2]
        return analyzer

    def rows(self, table):
        """Rows that wait in `table`."""
        return self.context.tables[<int>TABLE_NUMBERS[table]].rows

    def drain(self, table):
        """The waiting rows as a list of columns (see columns.COLUMNS); the table is empty afterwards."""
        number = TABLE_NUMBERS[table]
        self.check_idle(True)
        self.context.tables[<int>number].order.len = 0
        return take_table(&self.context.tables[<int>number], number)

    def drain_in_order(self, table):
        """(what `take` gives, where the rows were ended: three native int64 for each run of rows: a packet, a place in its
        work, the first row). Rows of analyzers that are `beside` each other come by them in the order of one of all."""
        self.check_idle(True)
        order = take_order(&self.context.tables[<int>TABLE_NUMBERS[table]])
        return self.drain(table), order

    @property
    def filled(self):
        """Bytes of the rows that wait, and of their texts."""
        return self.context.tables[0].spares.filled

    @property
    def alone(self):
        """Whether what was read may have other rows where one analyzer follows all connections."""
        return bool(self.streams.alone or self.context.topic_ids.renamed)

    def drain_shares(self):
        """The most that was kept at one time, since this was last asked, of each bound that all connections share, as a share
        of the bound; see rows/parallel.pyx."""
        return tell_shares(&self.streams, &self.context)

    @property
    def num_topics(self):
        """How many `topics()` tells of."""
        return self.context.topic_ids.named

    def topics(self):
        """Topic id (22 characters) -> (its name, the packet that named it)."""
        self.check_idle(True)
        return tell_learned(&self.context.topic_ids)


ctypedef void (*compile_hook)(void* owner, int key, int version, int direction, Program* program) noexcept nogil

cdef compile_hook compile_program_hook() noexcept:
    # Inside the class the parameter of the same name would hide the function.
    return compile_program
