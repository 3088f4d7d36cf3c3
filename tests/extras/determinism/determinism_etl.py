"""Functions as log, sensor, shop and text pipelines have them. None of them needs a declaration."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import base64, binascii, bisect, calendar, collections, contextlib, copy, csv, dataclasses, datetime, decimal, enum, fractions, functools, hashlib, heapq, hmac, html, io, ipaddress, itertools, json, logging, math, operator, os, re, statistics, string, struct, sys, textwrap, time, typing, unicodedata, urllib.parse, uuid, zlib, zoneinfo
from datetime import UTC, date, datetime as moment, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath

import determinism_etl_helper as geo
import numpy as np
import pandas as pd
from determinism_etl_helper import EARTH, Box, geohash, haversine
from determinism_kin import steady

from trident_py import Fields, Values
from trident_py.operations import (
    Aggregator,
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    ReducerAggregator,
)

log = logging.getLogger(__name__)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
CET = timezone(timedelta(hours=1), "CET")
EPOCH = moment(1970, 1, 1, tzinfo=UTC)
LOG = re.compile(
    r'(?P<ip>\S+) \S+ \S+ \[(?P<at>[^\]]+)\] "(?P<method>\w+) (?P<path>\S+) [^"]*" (?P<status>\d+) (?P<size>\S+)'
)
BOTS = ("bot", "crawler", "spider")
STATUS = {200: "ok", 404: "missing", 500: "broken"}
STATUS.update({301: "moved"})
CODES = {}
for _code, _name in STATUS.items():
    CODES[_name] = _code
SIZES = []
SIZES.append(10)
SIZES += [100, 1000]
STEPS = [("strip", str.strip), ("lower", str.lower)]
CENT = Decimal("0.01")
RATES = {"EUR": Decimal("1"), "USD": Decimal("0.92")}
try:
    import orjson as fast_json
except ImportError:
    fast_json = json
if sys.version_info >= (3, 11):
    from datetime import UTC as utc
else:
    utc = timezone.utc
WINDOW, SLIDE = 60, 10
ENGLISH = frozenset("a an and the of to in is".split())
MATRIX = np.eye(3)
HEADER = "id,name,price".split(",")
PATTERNS = [re.compile(each) for each in (r"\d+", r"[A-Z]+")]
SQUARES = {n: n * n for n in range(10)}


@steady
class WordCount(CombinerAggregator):
    def init(self, tuple):
        return 1

    def combine(self, val1, val2):
        return val1 + val2

    def zero(self):
        return 0


@steady
class SplitWords(BaseFunction):
    def execute(self, tuple, collector):
        for word in re.split(r"\W+", tuple.getString(0).lower()):
            if word and word not in ENGLISH:
                collector.emit(Values(word))


@steady
class ParseLog(Function):
    def prepare(self, conf, context):
        self.errors = 0
        self.wanted = frozenset(conf.get("methods", ("GET", "POST")))

    def execute(self, tuple, collector):
        match = LOG.match(tuple.getStringByField("line"))
        if match is None:
            log.warning("no log line: %r", tuple[0])
            return
        at = moment.strptime(match["at"], "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)
        size = 0 if match["size"] == "-" else int(match["size"])
        if match["method"] in self.wanted:
            collector.emit([match["ip"], at, match["path"], int(match["status"]), size])


@steady
class NoBots(BaseFilter):
    def isKeep(self, tuple):
        return not any(each in tuple.getStringByField("agent").lower() for each in BOTS)


@steady
class InHours(Filter):
    def __init__(self, first=8, last=18, zone="Europe/Berlin"):
        self.first, self.last, self.zone = first, last, zoneinfo.ZoneInfo(zone)

    def isKeep(self, tuple):
        return self.first <= tuple[0].astimezone(self.zone).hour < self.last


@steady
class Average(CombinerAggregator):
    def init(self, tuple):
        return (tuple.getDouble(0), 1)

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def zero(self):
        return 0.0, 0


@steady
class TopN(Aggregator):
    def __init__(self, n=10):
        self.n = n

    def init(self, batchId, collector):
        return []

    def aggregate(self, heap, tuple, collector):
        item = (tuple.getLongByField("count"), tuple.getStringByField("word"))
        if len(heap) < self.n:
            heapq.heappush(heap, item)
        else:
            heapq.heappushpop(heap, item)
        return heap

    def complete(self, heap, collector):
        for count, word in sorted(heap, reverse=True):
            collector.emit([word, count])


@steady
class Sessions(ReducerAggregator):
    def init(self):
        return {"first": None, "last": None, "n": 0}

    def reduce(self, curr, tuple):
        at = tuple.getValueByField("at")
        curr["first"] = at if curr["first"] is None else min(curr["first"], at)
        curr["last"] = at if curr["last"] is None else max(curr["last"], at)
        curr["n"] += 1
        return curr


@steady
class Quantiles(BaseAggregator):
    def init(self, batchId, collector):
        return collections.defaultdict(list)

    def aggregate(self, val, tuple, collector):
        val[tuple[0]].append(tuple[1])

    def complete(self, val, collector):
        for key, values in sorted(val.items()):
            collector.emit(
                [key, statistics.median(values), statistics.quantiles(values, n=4)[0], statistics.pstdev(values)]
            )


@dataclasses.dataclass(frozen=True, order=True)
class Order:
    id: str
    customer: str
    price: Decimal
    quantity: int = 1
    tags: tuple = ()

    def __post_init__(self):
        if self.quantity < 0:
            raise ValueError(f"negative quantity in {self.id}")

    @property
    def total(self):
        return (self.price * self.quantity).quantize(CENT, decimal.ROUND_HALF_EVEN)

    @classmethod
    def from_json(cls, text):
        found = json.loads(text, parse_float=Decimal)
        return cls(
            found["id"], found["customer"], found["price"], int(found.get("quantity", 1)), tuple(found.get("tags", []))
        )

    def taxed(self, rate=Decimal("0.19")):
        return dataclasses.replace(self, price=self.price * (1 + rate))


class Side(enum.Enum):
    BUY = "B"
    SELL = "S"

    @property
    def sign(self):
        return 1 if self is Side.BUY else -1

    @classmethod
    def of(cls, text):
        return cls(text[:1].upper())


class Flags(enum.Flag):
    NEW = enum.auto()
    PAID = enum.auto()


class Price(typing.NamedTuple):
    amount: Decimal
    currency: str = "EUR"

    def to_euro(self):
        return (self.amount * RATES[self.currency]).quantize(CENT)


@steady
def orders(text):
    order = Order.from_json(text)
    return [order.id, order.total, order.taxed().total, len(order.tags), order < order.taxed(), str(order)]


@steady
def side(text):
    return [Side.of(text).name, Side.of(text).sign, (Flags.NEW | Flags.PAID).value, Flags.NEW in Flags(3)]


@steady
def price(amount, currency):
    return [Price(Decimal(amount), currency).to_euro(), *Price(Decimal(1))]


@steady
def apache_time(text):
    return [moment.strptime(text, "%d/%b/%Y:%H:%M:%S %z").isoformat()]


@steady
def weekday(at):
    return [at.strftime("%A"), f"{at:%Y-%m-%d}", at.isoweekday(), calendar.monthrange(at.year, at.month)[1]]


@steady
def english_names(at):
    return [
        at.strftime("%c %x %X %a %b %p"),
        f"{at:%A %d %B}",
        time.strftime("%B", time.gmtime(0)),
        calendar.month_name[3],
        f"{at.month:n}",
    ]


@steady
def naive_kept(text):
    return [
        moment.strptime(text, "%Y-%m-%d").replace(hour=3),
        moment(2026, 1, 1).isoformat(),
        moment.strptime(text, "%Y").replace(tzinfo=BERLIN).timestamp(),
    ]


@steady
def utc_hour(seconds):
    return [moment.fromtimestamp(seconds, UTC).replace(minute=0, second=0, microsecond=0)]


@steady
def utc_by_keyword(ms):
    return [moment.fromtimestamp(ms / 1000, tz=timezone.utc).date().isoformat()]


@steady
def in_berlin(text):
    return [
        moment.fromisoformat(text).astimezone(BERLIN).strftime("%H:%M"),
        moment.fromisoformat(text).astimezone(tz=CET).hour,
    ]


@steady
def seconds_since(at):
    return [(at - EPOCH).total_seconds(), int((at - EPOCH) / timedelta(milliseconds=1))]


@steady
def stamp_of_utc(text):
    return [
        moment.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp(),
        calendar.timegm(time.strptime(text, "%Y-%m-%d")),
    ]


@steady
def stamp_of_aware(text):
    return [moment.fromisoformat(text).timestamp(), moment(2026, 1, 1, tzinfo=UTC).timestamp()]


@steady
def bucket(at):
    return [int(at.timestamp()) // WINDOW * WINDOW, [int(at.timestamp()) - at.second % SLIDE]]


@steady
def gm(seconds):
    return [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))]


@steady
def ages(born, day):
    return [day.year - born.year - ((day.month, day.day) < (born.month, born.day))]


@steady
def quarters(day):
    return [f"{day.year}Q{(day.month - 1) // 3 + 1}", day.replace(day=1), day - timedelta(days=day.weekday())]


@steady
def money(text):
    return [
        Decimal(text.replace(",", "")).quantize(CENT, rounding=decimal.ROUND_HALF_UP),
        Decimal(text).normalize(),
        Decimal(text).as_tuple().exponent,
    ]


@steady
def exact(text):
    with decimal.localcontext() as context:
        context.prec = 50
        return [Decimal(text) / 3]


@steady
def shares(a, b):
    return [fractions.Fraction(a, b).limit_denominator(100), fractions.Fraction(a).numerator]


@steady
def places(lat, lon):
    return [geohash(lat, lon, 6), round(haversine(lat, lon, 52.5, 13.4), 3), EARTH]


@steady
def boxes(lat, lon):
    return [Box(0, 0, 10, 10).contains(lat, lon), geo.Box.world().width, geo.ZONES["berlin"].contains(lat, lon)]


@steady
def tiles(lat, lon, zoom):
    n = 2**zoom
    x = int((lon + 180) / 360 * n)
    y = int((1 - math.log(math.tan(math.radians(lat)) + 1 / math.cos(math.radians(lat))) / math.pi) / 2 * n)
    return [(x, y, zoom)]


@steady
def words(text):
    return [
        (word, len(list(group))) for word, group in itertools.groupby(sorted(re.findall(r"[\w']+", text.casefold())))
    ]


@steady
def counted(text):
    return collections.Counter(text.split()).most_common(5)


@steady
def slug(title):
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return [re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")]


@steady
def masked(text):
    return [re.sub(r"(\w)[\w.]*@", lambda found: found[1] + "***@", text), text[-4:].rjust(len(text), "*")]


@steady
def hashed(word):
    return [
        hashlib.sha1(word.encode()).hexdigest()[:8],
        hashlib.blake2b(word.encode(), digest_size=8).digest(),
        zlib.adler32(word.encode()),
    ]


@steady
def signed(text, key):
    return [hmac.new(key.encode(), text.encode(), "sha256").hexdigest(), hmac.compare_digest(text, key)]


@steady
def sharded(word):
    return [int(hashlib.md5(word.encode()).hexdigest(), 16) % 16, zlib.crc32(word.encode()) % 8]


@steady
def packet(raw):
    kind, size = struct.unpack_from("!BH", raw, 0)
    return [kind, raw[3 : 3 + size].decode("utf-8", "replace"), binascii.hexlify(raw), struct.calcsize("!BH")]


@steady
def telegram(raw):
    fields = dict(part.split("=", 1) for part in raw.strip().split(";") if "=" in part)
    return [fields.get("id"), float(fields["t"]) if "t" in fields else None]


@steady
def flattened(text):
    def walk(value, path=""):
        if isinstance(value, dict):
            for key, each in sorted(value.items()):
                yield from walk(each, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for number, each in enumerate(value):
                yield from walk(each, f"{path}[{number}]")
        else:
            yield path, value

    return list(walk(json.loads(text)))


@steady
def canonical_json(text):
    return [json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)]


@steady
def encoded(record):
    return [json.dumps(record, default=str), json.dumps(record, cls=Encoder, indent=2)]


class Encoder(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, (date, moment)):
            return o.isoformat()
        return str(o) if isinstance(o, Decimal) else super().default(o)


@steady
def with_either_json(text):
    return [fast_json.loads(text)["id"]]


@steady
def urls(url):
    parts = urllib.parse.urlsplit(url)
    query = urllib.parse.parse_qs(parts.query)
    return [
        parts.hostname,
        parts.path.rstrip("/"),
        query.get("utm_source", [None])[0],
        urllib.parse.urlencode(sorted(query.items()), doseq=True),
    ]


@steady
def addresses(text):
    return [
        ipaddress.ip_address(text).is_private,
        str(ipaddress.ip_network(f"{text}/24", strict=False)),
        int(ipaddress.IPv4Address(text)),
    ]


@steady
def rows_of_csv(text):
    return [row["name"].title() for row in csv.DictReader(io.StringIO(text), fieldnames=HEADER)]


@steady
def to_csv(values):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return [out.getvalue()]


@steady
def coded(word):
    return [STATUS.get(word, "?"), CODES.get(word), SIZES[bisect.bisect(SIZES, 5) - 1], SQUARES[3]]


@steady
def piped(word):
    return [functools.reduce(lambda value, step: step[1](value), STEPS, word)]


@steady
def found(text):
    return [pattern.search(text).group() for pattern in PATTERNS if pattern.search(text)]


steady_partial = functools.partial(pow, 2)


@steady
def partials(n):
    return [steady_partial(n), functools.partial(round, ndigits=2)(n), functools.partial(int, base=16)("ff")]


@steady
def elementwise(values):
    array = np.asarray(values, dtype=np.float64)
    clipped = np.clip(np.log1p(np.abs(array)), 0, 5)
    return [
        clipped.round(6).tolist(),
        float(np.sqrt(array**2).max()),
        np.cumsum(array)[-1].item(),
        (MATRIX @ array[:3]).tolist(),
    ]


@steady
def scaled(values):
    array = np.array(values)
    out = np.zeros_like(array)
    out[array > 0] = 1
    order = np.argsort(array, kind="stable")
    return [
        out.tolist(),
        order.tolist(),
        np.unique(array).tolist(),
        np.histogram(array, bins=4)[0].tolist(),
        np.nanmean(array),
    ]


@steady
def pandas_frame(rows):
    frame = pd.DataFrame(rows, columns=["key", "value"])
    frame["value"] = pd.to_numeric(frame["value"], errors="coerce").fillna(0)
    found = frame.groupby("key", as_index=False)["value"].sum().sort_values("key")
    return list(found.itertuples(index=False, name=None))


@steady
def pandas_times(texts):
    series = pd.to_datetime(pd.Series(texts), utc=True)
    return [
        series.dt.floor("h").dt.strftime("%H").tolist(),
        pd.Timestamp("2026-01-01", tz="UTC").isoformat(),
        series.diff().dt.total_seconds().tolist(),
    ]


@steady
def pandas_pivot(rows):
    return [pd.DataFrame(rows).pivot_table(index="a", columns="b", values="c", aggfunc="sum").to_dict("records")]


@steady
def seen_in_order(words):
    return list(dict.fromkeys(words))


@steady
def distinct_count(words):
    return [len(set(words)), len(set(words) & ENGLISH), set(words) <= ENGLISH, max(set(words))]


@steady
def overlap(a, b):
    return [len(set(a) & set(b)) / len(set(a) | set(b)), sorted(set(a) ^ set(b)), not set(a).isdisjoint(b)]


@steady
def exact_sum(values):
    return [math.fsum(set(values)), sum(values), sum(sorted({float(each) for each in values}))]


@steady
def minhash(words):
    return [min(int(hashlib.md5(f"{seed}{word}".encode()).hexdigest(), 16) for word in words) for seed in range(4)]


@steady
def shingles(text, k=3):
    return [text[i : i + k] for i in range(len(text) - k + 1)]


@steady
def moving(values, n=3):
    window = collections.deque(maxlen=n)
    for value in values:
        window.append(value)
        yield [sum(window) / len(window)]


@steady
def state_machine(events):
    state, out = "idle", []
    for event in events:
        match (state, event):
            case ("idle", "start"):
                state = "busy"
            case ("busy", "stop"):
                state = "idle"
                out.append(event)
            case _:
                continue
    return out


@steady
def retried(text):
    for kind in (int, float, str):
        with contextlib.suppress(ValueError):
            return [kind(text)]
    return []


@steady
def guarded(text):
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        log.exception("bad")
        return [("bad", str(error), error.pos)]
    else:
        return [("good", value.get("x"))]


@steady
def typed(value):
    if isinstance(value, bool):
        return ["bool"]
    return [type(value).__name__, value.__class__.__name__]


@steady
def text_tools(text):
    return [
        textwrap.dedent(text),
        html.escape(text),
        string.capwords(text),
        text.partition(":")[2],
        base64.urlsafe_b64encode(text.encode()),
        " ".join(text.split()),
    ]


@steady
def uuids(word):
    return [uuid.uuid5(uuid.NAMESPACE_DNS, word).hex, uuid.uuid3(uuid.NAMESPACE_URL, word), uuid.UUID(int=5)]


@steady
def suffixes(path):
    return [
        PurePosixPath(path).with_suffix(".gz").name,
        os.path.splitext(path)[1],
        os.sep.join(["a", path]),
        path + os.linesep,
    ]


@steady
def soundex(word):
    codes = {c: d for d, cs in enumerate(("bfpv", "cgjkqsxz", "dt", "l", "mn", "r"), 1) for c in cs}
    digits = [codes.get(c, 0) for c in word.lower()]
    return [word[0].upper() + "".join(str(d) for d, _ in itertools.groupby(digits) if d)[:3].ljust(3, "0")]


@steady
def luhn(number):
    digits = [int(c) for c in reversed(number)]
    return [(sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0]


@steady
def rank(rows):
    return [(i, row) for i, row in enumerate(sorted(rows, key=operator.itemgetter("score", "name"), reverse=True), 1)]


@steady
def merged(rows):
    return list(heapq.merge(*[sorted(each) for each in rows], key=lambda each: each))


@steady
def joined(left, right):
    by_key = {row["id"]: row for row in right}
    return [{**row, **by_key.get(row["id"], {})} for row in left]


@steady
def nested_defaults(rows):
    tree = lambda: collections.defaultdict(int)
    found = collections.defaultdict(tree)
    for a, b in rows:
        found[a][b] += 1
    return [(a, dict(each)) for a, each in found.items()]


@steady
def bits(n):
    return [
        n.bit_length(),
        bin(n).count("1"),
        n >> 2 & 0b11,
        int.from_bytes(n.to_bytes(8, sys.byteorder), sys.byteorder),
        min(n, sys.maxsize),
    ]


class Rule:
    def __init__(self, field, low, high):
        self.field, self.low, self.high = field, low, high

    def __call__(self, row):
        return self.low <= row[self.field] <= self.high

    def __repr__(self):
        return f"Rule({self.field})"


RULES = (Rule("t", -40, 60), Rule("h", 0, 100))


@steady
def valid(row):
    return all(rule(row) for rule in RULES)


@steady
class Validated(Function):
    def __init__(self, rules=RULES):
        self.rules = list(rules)

    def execute(self, tuple, collector):
        broken = [repr(rule) for rule in self.rules if not rule(tuple)]
        collector.emit([",".join(broken) or "ok"])


class Tokenizer:
    def __init__(self, stop=ENGLISH):
        self.stop = stop

    def tokens(self, text):
        for word in text.lower().split():
            if word not in self.stop:
                yield self.stem(word)

    @staticmethod
    def stem(word):
        return word[:-1] if word.endswith("s") else word


@steady
class Tokens(FlatMapFunction):
    def __init__(self):
        self.tokenizer = Tokenizer()

    def execute(self, tuple):
        return [[each] for each in self.tokenizer.tokens(tuple[0])]


@steady
class Enriched(MapFunction):
    def __init__(self, table=None):
        self.table = dict(table or {"a": 1})

    def execute(self, tuple):
        return [tuple[0], self.table.get(tuple[0], 0), tuple.size()]


@steady
class EmitsRecords(Function):
    def execute(self, tuple, collector):
        collector.emit([Order("1", "c", Decimal(tuple[0]))])


@steady
class ReadsRecords(Function):
    def execute(self, tuple, collector):
        order = tuple.getValueByField("order")
        collector.emit([order.id, order.price * order.quantity, order.customer.upper()])


@steady
class Chunks(Function):
    def execute(self, tuple, collector):
        reader = io.BytesIO(tuple.getBinary(0))
        while chunk := reader.read(4):
            collector.emit([chunk, reader.tell()])
