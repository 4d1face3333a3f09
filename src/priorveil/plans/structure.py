"""What the documents of plans and forms hold: structs that check them, and the JSON Schema that follows from these.

Integers that a sampler or a certificate looks at, and all real numbers, are texts. A struct says which fields there
are and how they are written; whether they are true is proven in `plans.document`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from inspect import cleandoc
from threading import Lock
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from priorveil.errors import PlanError
from priorveil.priors.number_domains import Outside

T = TypeVar("T")
_LONGEST_PROBLEM = 200  # it may quote a document
MOST_DIGITS = 4300  # longer integers are not read by Python


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


def about(text: str) -> Meta:
    """What a field means, for the schema."""
    return Meta(description=text)


def schema_keywords(**schema: Any) -> Meta:
    """Keywords of a schema that decoding does not check: the code that reads the document does."""
    return Meta(extra_json_schema=schema)


Some = Meta(min_length=1)  # of a list or a text
Unique = schema_keywords(uniqueItems=True)

CONTENT_ID = "[0-9a-f]{64}"
ContentId = Annotated[str, Meta(pattern=f"^{CONTENT_ID}$")]
Natural = Annotated[
    str,
    Meta(pattern="^(0|[1-9][0-9]*)$", max_length=MOST_DIGITS, description="An integer, zero or more."),
]
Positive = Annotated[
    str, Meta(pattern="^[1-9][0-9]*$", max_length=MOST_DIGITS, description="An integer, one or more.")
]
Real = Annotated[
    str,
    Meta(
        pattern=r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?|inf)$",
        description="The shortest text that reads back to the same double, or inf.",
    ),
]
Index = Annotated[int, Meta(ge=0)]
Bits = Annotated[int, Meta(ge=1, le=52)]
Name = Annotated[str, Some]
Naturals = Annotated[list[Natural], Some]
Positives = Annotated[list[Positive], Some]
Reals = Annotated[list[Real], Some]
CodeList = Annotated[list[Index], Unique]
Assumed = Annotated[
    Annotated[bool, schema_keywords(enum=[True])] | UnsetType,
    about("There only if the prior was assumed and not known: LIP then holds only if it is right."),
]

# -- domains -----------------------------------------------------------------------------------------------


class NumberLevel(Document, frozen=True):
    """A number that is not an integer."""

    number: Real


DocumentLevel = str | int | NumberLevel
Labels = Annotated[list[DocumentLevel | Annotated[list[DocumentLevel], Some]], Some, Unique]
IncreasingReals = Annotated[list[Real], Meta(min_length=2)]


class GridDomain(Document, frozen=True, tag_field="kind", tag="grid"):
    """Numbers: the increasing points to which they are rounded at random, keeping their mean.

    A number outside the range is refused, or counted at the nearest end.
    """

    points: IncreasingReals
    outside: Outside


class CellsDomain(Document, frozen=True, tag_field="kind", tag="cells"):
    """Numbers: the increasing edges of cells. A number outside the range is refused, or counted at the nearest end."""

    edges: IncreasingReals
    outside: Outside


class JointAttribute(Document, frozen=True):
    """An attribute and its levels."""

    name: str
    levels: Annotated[list[DocumentLevel], Some, Unique] | GridDomain | CellsDomain


class JointDomain(Document, frozen=True, tag_field="kind", tag="joint"):
    """Several attributes, each with its levels, and the combinations of levels that are values.

    A combination has the position of a level of each attribute.
    """

    attributes: Annotated[list[JointAttribute], Some]
    cells: Annotated[list[Annotated[list[Index], Some]], Some, Unique]


# -- priors ------------------------------------------------------------------------------------------------


class FixedPrior(Document, frozen=True, tag_field="kind", tag="fixed"):
    """One prior in integers."""

    weights: Positives
    assumed: Assumed = UNSET


class FinitePriors(Document, frozen=True, tag_field="kind", tag="finite"):
    """A list of priors in integers."""

    members: Annotated[list[Positives], Some]
    assumed: Assumed = UNSET


class SampleDocument(Document, frozen=True):
    """How many people of a sample have each value; a share `delta` of samples may mislead."""

    counts: Naturals
    delta: Real


class IntervalPriors(Document, frozen=True, tag_field="kind", tag="interval"):
    """All priors between two ends, which may be those that a sample leaves possible."""

    lower: Reals
    upper: Reals
    sample: SampleDocument | UnsetType = UNSET


class BallPriors(Document, frozen=True, tag_field="kind", tag="ball"):
    """All priors within a total variation distance of one."""

    weights: Positives
    radius: Real
    assumed: Assumed = UNSET


class Scenario(Document, frozen=True):
    """Pr(value | secret): a row for each secret."""

    labels: Labels
    rows: Annotated[list[Reals], Some]


# -- mechanisms --------------------------------------------------------------------------------------------


class TableParameters(Document, frozen=True, tag_field="kind", tag="table"):
    """Row x holds the weights of the reports of value x; each row adds up to 2**bits."""

    bits: Literal[62]
    weights: Annotated[list[Naturals], Some]


class GroupedParameters(Document, frozen=True, tag_field="kind", tag="grouped"):
    """A table whose rows are shared: value x has row rows[x]."""

    bits: Literal[62]
    weights: Annotated[list[Naturals], Some]
    rows: Annotated[list[Index], Some]


class ArcParameters(Document, frozen=True, tag_field="kind", tag="arc"):
    """Segments on a line of 2**bits places.

    `owners` have a report of their own, the other values share a circle, which begins at `start`; a report is the start
    of a window on it. `circle` has these values in order.
    """

    bits: Bits
    lengths: Positives
    owners: CodeList
    circle: CodeList
    start: Natural
    window: Natural
    keep: Natural


class OrdersParameters(Document, frozen=True, tag_field="kind", tag="orders"):
    """Segments on a line of 2**bits places, with many orders of those that share a circle.

    `owners` have a report of their own, the other values share a circle, which begins where the segments of the owners
    end; a report is the start of a window on it. The values of the circle have `count` public orders, a power of two.
    With the half `h` of the least prime above their number, rounded down, order i has the seed `i // h`; it shuffles
    the values by the seed, then sorts them by a multiplier times rank modulo the prime. The multipliers are 1 to h for
    each seed, or where fewer orders are left, evenly spread over them. A report is i * 2**bits plus that of its line.
    """

    bits: Bits
    lengths: Positives
    owners: CodeList
    count: Annotated[int, Meta(ge=1, le=65536)]
    window: Natural
    keep: Natural


class UnaryParameters(Document, frozen=True, tag_field="kind", tag="unary"):
    """A bit for each value: 0 becomes 1 with noise / 2**noise_bits, 1 becomes 0 with drop / 2**62."""

    masses: Positives
    noise: Annotated[int, Meta(ge=1)]
    noise_bits: Annotated[int, Meta(ge=1, le=62)]
    drop: Natural


class SubsetParameters(Document, frozen=True, tag_field="kind", tag="subset"):
    """A set of subset_size values as a row of bits.

    It holds the true value with keep / 2**62, the rest is a random subset of the others.
    """

    masses: Annotated[list[Positive], Meta(min_length=2)]
    subset_size: Annotated[int, Meta(ge=1)]
    keep: Natural


class HashingParameters(Document, frozen=True, tag_field="kind", tag="hashing"):
    """Public seeds of hash functions, the group of every bin, and the chance fresh / 2**62 of a fresh draw."""

    weights: Positives
    seeds: Naturals
    groups: Annotated[list[Annotated[list[Index], Some]], Some]
    fresh: Natural


# The parameters of the mechanisms that come with the package, by kind.
PARAMETERS: dict[str, type[Document]] = {
    str(parameters.__struct_config__.tag): parameters
    for parameters in (
        TableParameters, GroupedParameters, ArcParameters, OrdersParameters, UnaryParameters, SubsetParameters,
        HashingParameters,
    )
}  # fmt: skip
_PLACES = {kind: f"#/$defs/{parameters.__name__}" for kind, parameters in PARAMETERS.items()}
_OTHER_MECHANISM = {
    "description": "A mechanism that does not come with priorveil: its kind, and its own fields. "
    "Programs that do not know it refuse the plan.",
    "type": "object",
    "properties": {"kind": {"type": "string", "minLength": 1, "not": {"enum": list(PARAMETERS)}}},
    "required": ["kind"],
}
MechanismDocument = Annotated[
    dict[str, Any],
    about("What a device samples from: integers only."),
    schema_keywords(
        anyOf=[*({"$ref": place} for place in _PLACES.values()), _OTHER_MECHANISM],
        discriminator={"propertyName": "kind", "mapping": _PLACES},
    ),
]
NamedDocument = Annotated[
    dict[str, Any],
    schema_keywords(properties={"name": {"type": "string", "minLength": 1}}, required=["name"]),
]

# -- plans and forms ---------------------------------------------------------------------------------------

DesignMethod = Literal["closed", "arc", "columns", "unary", "subset", "hashing"]


class BudgetDocument(Document, frozen=True):
    """The most that belief may fall or rise, in natural logarithms; "inf" is no limit."""

    lower: Real
    upper: Real


class CertificateDocument(Document, frozen=True):
    """Proven levels, rounded up, and the name of the plan's notion."""

    notion: Name
    lip_lower: Real
    lip_upper: Real
    ldp: Real
    level: Real


class PlanDocument(Document, frozen=True):
    """What devices run and how reports are read. Public.

    Long integers and real numbers are strings, so that every language reads the same document; `id` is the SHA-256 of
    the canonical text (sorted keys, no spaces, UTF-8) of everything else.
    """

    id: ContentId
    format: Literal["priorveil-plan"]
    version: Literal[1]
    labels: Annotated[
        Labels | JointDomain | GridDomain | CellsDomain,
        about("What a value may be: names in the order of their codes; several attributes; or numbers."),
    ]
    prior: Annotated[
        FixedPrior | FinitePriors | IntervalPriors | BallPriors,
        about("What is known: one prior in integers, or a set of them."),
    ]
    secret: Annotated[
        Annotated[list[Scenario], Some] | None,
        about("Pr(value | secret), a scenario each; null where the value itself is the secret."),
    ]
    budget: BudgetDocument
    notion: Annotated[
        NamedDocument, about("What the budget bounds: the name of the notion, and its own fields.")
    ]
    query: Annotated[NamedDocument, about("What is asked: the name of the query, and its own fields.")]
    mechanism: MechanismDocument
    certificate: CertificateDocument
    expected_mse: Real
    lower_bound: Real
    no_report: Real
    method: Annotated[
        Literal[DesignMethod, "given"],
        about("How the mechanism was designed; given if its channel was given and not designed."),
    ]
    why: str
    reading_prior: Annotated[
        FixedPrior | UnsetType,
        about("In plans for sets of priors: the prior that unbiased scores are made for."),
    ] = UNSET


class PartDocument(Document, frozen=True):
    """A plan, the attributes that it is about, and its share of the people whom its slot asks."""

    attributes: Annotated[list[Name], Some]
    share: Annotated[int, Meta(ge=1, le=1 << 20)]
    plan: Annotated[dict[str, Any], schema_keywords(**{"$ref": "#/$defs/PlanDocument"})]


class FormDocument(Document, frozen=True):
    """What leaves a device: a report for each slot, about its part or about one that is drawn."""

    id: ContentId
    format: Literal["priorveil-form"]
    version: Literal[1]
    slots: Annotated[list[Annotated[list[PartDocument], Some]], Some]


# -- checks and the schema ---------------------------------------------------------------------------------


# msgspec prepares a struct at its first use; another thread that uses it meanwhile would crash the process.
_preparing = Lock()


def convert(value: object, kind: type[T]) -> T:
    """The value as one of this type; raises `msgspec.ValidationError`. Threads may call it at once."""
    with _preparing:
        return msgspec.convert(value, kind)


def decode(content: bytes, kind: type[T], hook: Callable[[type, Any], Any] | None = None) -> T:
    """JSON as a value of this type, with `hook` for what msgspec does not know. Threads may call it at once."""
    with _preparing:
        return msgspec.json.decode(content, type=kind, dec_hook=hook)


def require_structure(document: Any, structure: type[Document], field: str | None = None) -> None:
    """Refuse a document that is not as its struct says; the `PlanError` names `field`, or the outermost one."""
    try:
        convert(document, structure)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        named = re.match(r"\w+", place) or re.search("(?<=field `).+(?=`)", problem, re.DOTALL)
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in problem[:_LONGEST_PROBLEM])
        advice = shown[0].lower() + shown[1:] + (place and f", at {place.rstrip('`')}")
        raise PlanError(field or (named[0] if named else "file"), advice) from None


@cache
def _kinds(structure: type[Document]) -> Mapping[str, Any]:
    """The types of the fields of a document, which take a millisecond to find out."""
    return {each.name: each.type for each in msgspec.structs.fields(structure)}


def may_hold(structure: type[Document], field: str, value: object) -> bool:
    """Whether a field of a document may have this value."""
    try:
        convert(value, _kinds(structure)[field])
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for half a surrogate pair
        return False
    return True


def edition(structure: type[Document]) -> dict[str, Any]:
    """The format and the version that a document of this struct states.

    >>> edition(PlanDocument)
    {'format': 'priorveil-plan', 'version': 1}
    """
    return {name: get_args(_kinds(structure)[name])[0] for name in ("format", "version")}


def definitions(*structures: type[msgspec.Struct]) -> dict[str, Any]:
    """The schemas of documents and of everything in them, by name, each referring to others as `#/$defs/NAME`."""
    _, schemas = msgspec.json.schema_components((*structures, *PARAMETERS.values()))
    return {
        name: {**schema, "description": cleandoc(schema["description"])} for name, schema in schemas.items()
    }
