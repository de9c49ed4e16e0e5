"""The grammar of filters.

expression = all { "or" all }
all        = one { "and" one }
one        = "not" one | "(" expression ")" | condition
condition  = column operator value | column ["not"] "in" "(" value { "," value } ")"
           | column ["not"] "like" value | column "is" ["not"] "null" | flag
operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~"
"""

from collections.abc import Callable
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Final

from kwsniff.filter.attributes import ERROR, KINDS, Attribute, load_attributes, nearest
from kwsniff.filter.conditions import (
    Condition,
    ErrorCondition,
    NullCondition,
    NumberCondition,
    PacketCondition,
    TextCondition,
    matches_pattern,
)
from kwsniff.filter.expression import Filter, Junction, Negation, Node
from kwsniff.filter.literals import Value, ValueProblem, read_value
from kwsniff.filter.tokens import FilterError, Token, tokenize
from kwsniff.sources.times import Moment
from kwsniff.zones import UTC_ZONE, Zone

_KEYWORDS: Final = ("and", "or", "not", "in", "is", "like", "null")
_ORDERS: Final = {"<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATORS: Final = ("=", "!=", *_ORDERS, "~", "!~")
_DEEPEST: Final = 100
_LONGEST: Final = 1 << 20
_TEXTS: Final = ("text", "texts")
_UNORDERED: Final = ("texts", "errors", "flag", "packets")


def parse_filter(text: str, zone: Zone = UTC_ZONE) -> Filter:
    """The filter that a text is. `zone`: of times without an offset. Raises FilterError."""
    if len(text) > _LONGEST:
        raise FilterError(f"a filter may have {_LONGEST:,} characters", text, 0, 1)
    return _Parser(text, zone).filter()


class _Parser:
    def __init__(self, text: str, zone: Zone) -> None:
        self._text = text
        self._zone = zone
        self._tokens = [*tokenize(text)]
        self._at = 0
        self._depth = 0

    def filter(self) -> Filter:
        node = self._expression()
        if not self._next.kind == "end":
            raise self._error("expected 'and', 'or' or the end", self._next)
        return Filter(node, self._text.strip())

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _error(self, problem: str, first: Token, last: Token | None = None) -> FilterError:
        return FilterError(problem, self._text, first.start, (last or first).end)

    def _expression(self) -> Node:
        return self._join("or", lambda: self._join("and", self._one, all=True), all=False)

    def _join(self, keyword: str, part: Callable[[], Node], *, all: bool) -> Node:
        parts = [part()]
        while self._next.is_keyword(keyword):
            self._take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(tuple(parts), all=all)

    def _one(self) -> Node:
        if not (self._next.is_keyword("not") or self._next.is_operator("(")):
            return self._condition()
        opening = self._take()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} levels of parentheses and 'not'", opening)
        if opening.is_keyword("not"):
            node: Node = Negation(self._one())
        else:
            node = self._expression()
            if not self._next.is_operator(")"):
                raise self._error("this parenthesis is not closed", opening)
            self._take()
        self._depth -= 1
        return node

    def _condition(self) -> Node:
        name = self._take()
        if name.kind != "word" or name.is_keyword(*_KEYWORDS):
            raise self._error("expected a column", name)
        attribute = load_attributes().get(name.value.lower())
        if attribute is None:
            raise self._error(f"unknown column '{name.value}'; {nearest(name.value.lower())}", name)
        token = self._take()
        if token.is_keyword("is"):
            return self._null(attribute)
        negated = token.is_keyword("not")
        if negated:
            token = self._take()
            if not token.is_keyword("in", "like"):
                raise self._error("expected 'in' or 'like' after 'not'", token)
        if token.is_keyword("in"):
            node: Node = self._in(attribute)
        elif token.is_keyword("like"):
            node = self._like(attribute, token)
        elif token.is_operator(*_OPERATORS):
            negated = token.value.startswith("!")
            node = self._comparison(attribute, token)
        elif attribute.kind == "flag" and (
            token.kind == "end" or token.is_keyword("and", "or") or token.is_operator(")")
        ):
            self._at -= token.kind != "end"
            return NumberCondition(attribute.column, "=", (Fraction(1),))
        else:
            known = f"{', '.join(_OPERATORS)}, in, like or is null"
            raise self._error(f"expected an operator after {attribute.name}: {known}", token)
        return Negation(node) if negated else node

    def _null(self, attribute: Attribute) -> Node:
        negated = self._next.is_keyword("not")
        if negated:
            self._take()
        if not self._next.is_keyword("null"):
            raise self._error("expected 'null' or 'not null' after 'is'", self._next)
        self._take()
        node = NullCondition("error_count" if attribute.kind == "errors" else attribute.column)
        return Negation(node) if negated else node

    def _in(self, attribute: Attribute) -> Condition:
        opening = self._take()
        if not opening.is_operator("("):
            raise self._error("expected a list in parentheses after 'in': (a, b)", opening)
        values = [self._value(attribute)]
        while self._next.is_operator(","):
            self._take()
            values.append(self._value(attribute))
        if not self._next.is_operator(")"):
            problem = "this parenthesis is not closed" if self._next.kind == "end" else "expected ',' or ')'"
            raise self._error(problem, opening if self._next.kind == "end" else self._next)
        self._take()
        return _equal(attribute, values)

    def _like(self, attribute: Attribute, token: Token) -> Condition:
        if attribute.kind not in _TEXTS:
            raise self._error(f"'like' compares texts; {attribute.name} is {KINDS[attribute.kind]}", token)
        return TextCondition(attribute.column, matches_pattern(self._word().value))

    def _comparison(self, attribute: Attribute, token: Token) -> Condition:
        operator = token.value.removeprefix("!")
        if operator == "~":
            if attribute.kind not in _TEXTS:
                raise self._error(f"'~' compares texts; {attribute.name} is {KINDS[attribute.kind]}", token)
            part = self._word().value.lower()
            return TextCondition(attribute.column, lambda text: part in text.lower())
        if operator in {"", "="}:
            return _equal(attribute, [self._value(attribute)])
        if attribute.kind in _UNORDERED:
            raise self._error(f"{attribute.name} is {KINDS[attribute.kind]}, which has no order", token)
        if attribute.kind == "text":
            bound, order = self._word().value, _ORDERS[operator]
            return TextCondition(attribute.column, lambda text: order(text, bound))
        return NumberCondition(attribute.column, operator, _numbers([self._value(attribute)]))

    def _word(self) -> Token:
        token = self._take()
        if token.kind not in ("word", "text"):
            raise self._error("expected a value", token)
        if token.is_keyword("null"):
            raise self._error("nothing compares with null; write 'is null' or 'is not null'", token)
        if token.is_keyword(*_KEYWORDS):
            raise self._error(f"expected a value; '{token.value}' as a text needs quotes", token)
        return token

    def _value(self, attribute: Attribute) -> Value:
        token = self._word()
        if token.kind == "word" and attribute.kind in ("time", "duration", "size"):
            token = self._with_rest(token)
        try:
            return read_value(token.value, attribute, self._zone)
        except ValueProblem as problem:
            raise self._error(str(problem), token) from None

    def _with_rest(self, token: Token) -> Token:
        """A value and a unit or a time of day behind a space: `100 ms`, `2026-11-20 22:06`."""
        rest = self._next
        if rest.kind != "word" or rest.is_keyword(*_KEYWORDS):
            return token
        self._take()
        return Token("word", f"{token.value} {rest.value}", token.start, rest.end)


def _equal(attribute: Attribute, values: list[Value]) -> Condition:
    if attribute.kind == "errors":
        return ErrorCondition(ERROR, frozenset(int(value) for value in values if isinstance(value, Fraction)))
    if attribute.kind == "packets":
        return PacketCondition(
            attribute.column,
            frozenset(int(value) for value in values if isinstance(value, Fraction)),
        )
    if attribute.kind in _TEXTS:
        return TextCondition(attribute.column, frozenset(map(str, values)).__contains__)
    return NumberCondition(attribute.column, "=", _numbers(values))


def _numbers(values: list[Value]) -> tuple[Fraction | Moment, ...]:
    return tuple(value for value in values if not isinstance(value, str))
