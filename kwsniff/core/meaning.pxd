# cython: language_level=3
# What a field means, as the layouts' third column says it: kwsniff/layout/meaning.py has the whole list, a
# contract test compares the numbers. Only those that some compiled room acts upon stand here.

cdef enum Meaning:
    MEANING_NONE = 0
    MEANING_TOPIC = 1
    MEANING_TOPIC_ID = 2
    MEANING_PARTITION = 3
    MEANING_ERROR = 4
    MEANING_ERROR_MESSAGE = 5
    MEANING_THROTTLE = 6
    MEANING_GROUP = 7
    MEANING_TRANSACTIONAL_ID = 8
    MEANING_ACKS = 11
    MEANING_RECORDS = 12
    MEANING_CLIENT_ID = 13
    MEANING_SOFTWARE_NAME = 17
    MEANING_SOFTWARE_VERSION = 18
    MEANING_SASL_MECHANISM = 19
    MEANING_FORGOTTEN = 51
    MEANING_HELD_BACK = 58
