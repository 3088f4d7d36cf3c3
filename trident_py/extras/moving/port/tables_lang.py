"""Table of the library: java.lang without texts."""

LANG = r"""
[Object]
equals/1 boolean = equals($this, $0)
hashCode/0 int = hash_code($this)
toString/0 String = to_text($this)

[Objects]
.equals/2 boolean = equals($0, $1)
.hash/* int = hash_code([$*])
.hashCode/1 int = 0 if $0 is None else hash_code($0)
.toString(float) String = float_text($0)
.toString/1 String = to_text($0)
.toString/2 String = $1 if $0 is None else to_text($0)
.isNull/1 boolean = $0 is None
.nonNull/1 boolean = $0 is not None
.requireNonNull/1 A0 = require($0)
.requireNonNull/2 A0 = require($0, $1)
.requireNonNullElse/2 A0 = $1 if $0 is None else $0

[Number]
intValue/0 int = to_int($this)
longValue/0 long = to_long($this)
shortValue/0 short = to_short($this)
byteValue/0 byte = to_byte($this)
doubleValue/0 double = float($this)

[Integer Short Byte]
intValue/0 int = $this

[Integer Long Short Byte]
longValue/0 long = $this
compareTo/1 int = compare($this, $0)
.compare/2 int = compare($0, $1)
.signum/1 int = compare($0, 0)

[Integer]
.parseInt/1 int = parse_int($0)
.parseInt/2 int = parse_int($0, $1)
.valueOf(String) Integer = parse_int($0)
.valueOf(char) Integer = ord($0)
.valueOf/1 Integer = $0
.toString/1 String = str($0)
.toString/2 String = in_base($0, $1)
.toHexString/1 String = in_base($0 & 0xFFFFFFFF, 16)
.toOctalString/1 String = in_base($0 & 0xFFFFFFFF, 8)
.numberOfTrailingZeros/1 int = trailing_zeros($0, 32)
.toBinaryString/1 String = in_base($0 & 0xFFFFFFFF, 2)
.bitCount/1 int = ($0 & 0xFFFFFFFF).bit_count()
.sum/2 int = to_int($0 + $1)
.max/2 int = max($0, $1)
.min/2 int = min($0, $1)
.hashCode/1 int = $0
.MAX_VALUE int = 2147483647
.MIN_VALUE int = -2147483648
new(String) Integer = parse_int($0)
new/1 Integer = $0

[Long]
.parseLong/1 long = parse_long($0)
.parseLong/2 long = parse_long($0, $1)
.valueOf(String) Long = parse_long($0)
.valueOf/1 Long = $0
.toString/1 String = str($0)
.toString/2 String = in_base($0, $1)
.toHexString/1 String = in_base($0 & 0xFFFFFFFFFFFFFFFF, 16)
.toBinaryString/1 String = in_base($0 & 0xFFFFFFFFFFFFFFFF, 2)
.bitCount/1 int = ($0 & 0xFFFFFFFFFFFFFFFF).bit_count()
.sum/2 long = to_long($0 + $1)
.max/2 long = max($0, $1)
.min/2 long = min($0, $1)
.hashCode/1 int = hash_long($0)
hashCode/0 int = hash_long($this)
.MAX_VALUE long = 9223372036854775807
.MIN_VALUE long = -9223372036854775808
new(String) Long = parse_long($0)
new/1 Long = $0

[Short]
.parseShort/1 short = parse_short($0)
.MAX_VALUE short = 32767
.MIN_VALUE short = -32768

[Byte]
.MAX_VALUE byte = 127
.MIN_VALUE byte = -128

[Double]
.parseDouble/1 double = parse_double($0)
.valueOf(String) Double = parse_double($0)
.valueOf/1 Double = float($0)
.toString/1 String = to_text(float($0))
.compare/2 int = compare_doubles($0, $1)
.isNaN/1 boolean = math.isnan($0)
.isInfinite/1 boolean = math.isinf($0)
.isFinite/1 boolean = math.isfinite($0)
isNaN/0 boolean = math.isnan($this)
isInfinite/0 boolean = math.isinf($this)
.sum/2 double = $0 + $1
.max/2 double = max_of($0, $1)
.min/2 double = min_of($0, $1)
doubleValue/0 double = $this
compareTo/1 int = compare_doubles($this, $0)
.MAX_VALUE double = 1.7976931348623157e308
.MIN_VALUE double = 5e-324
.POSITIVE_INFINITY double = math.inf
.NEGATIVE_INFINITY double = -math.inf
.NaN double = math.nan
new(String) Double = parse_double($0)
new/1 Double = float($0)

[Float]
.toString/1 String = float_text($0)
toString/0 String = float_text($this)
.compare/2 int = compare_doubles($0, $1)
.MAX_VALUE float = 3.4028234663852886e38
.parseFloat/1 float = to_float(parse_double($0))
.valueOf(String) Float = to_float(parse_double($0))
doubleValue/0 double = $this
floatValue/0 float = $this

[Boolean]
.parseBoolean/1 boolean = parse_boolean($0)
.valueOf(String) Boolean = parse_boolean($0)
.valueOf/1 Boolean = $0
.toString/1 String = to_text($0)
booleanValue/0 boolean = $this
.TRUE Boolean = True
.FALSE Boolean = False
.compare/2 int = compare($0, $1)
compareTo/1 int = compare($this, $0)

[Character]
.isDigit(char) boolean = $0.isdecimal()
.isLetter(char) boolean = $0.isalpha()
.isLetterOrDigit(char) boolean = is_letter_or_digit($0)
.isAlphabetic/1 boolean = is_alphabetic($0)
.isUpperCase(char) boolean = $0.isupper()
.isLowerCase(char) boolean = $0.islower()
.isWhitespace(char) boolean = is_whitespace($0)
.toUpperCase(char) char = char_upper($0)
.toLowerCase(char) char = char_lower($0)
.toString/1 String = $0
.valueOf/1 Character = $0
.getNumericValue(char) int = numeric_value($0)
.toChars/1 char[] = [chr($0)]
charValue/0 char = $this
compareTo/1 int = ord($this) - ord($0)
.compare/2 int = ord($0) - ord($1)

[Math StrictMath]
.PI double = math.pi
.E double = math.e
.abs(int) int = to_int(abs($0))
.abs(long) long = to_long(abs($0))
.abs/1 A0 = abs($0)
.max(double, double) double = max_of($0, $1)
.min(double, double) double = min_of($0, $1)
.max(float, float) float = max_of($0, $1)
.min(float, float) float = min_of($0, $1)
.max/2 A0 = max($0, $1)
.min/2 A0 = min($0, $1)
.sqrt/1 double = square_root($0)
.cbrt/1 double = math.cbrt($0)
.pow/2 double = power($0, $1)
.exp/1 double = exp($0)
.log/1 double = log($0)
.log10/1 double = log10($0)
.floor/1 double = floor($0)
.ceil/1 double = ceil($0)
.rint/1 double = rint($0)
.round(float) int = round_half_up($0, 32)
.round/1 long = round_half_up($0)
.signum/1 double = signum($0)
.sin/1 double = math.sin($0)
.cos/1 double = math.cos($0)
.tan/1 double = math.tan($0)
.asin/1 double = math.asin($0)
.acos/1 double = math.acos($0)
.atan/1 double = math.atan($0)
.atan2/2 double = math.atan2($0, $1)
.hypot/2 double = math.hypot($0, $1)
.toRadians/1 double = to_radians($0)
.toDegrees/1 double = to_degrees($0)
.floorMod/2 A1 = $0 % $1
.floorDiv/2 A0 = $0 // $1
.random/0 double = Random().nextDouble()
.addExact(int, int) int = exact($0 + $1, 32)
.addExact/2 long = exact($0 + $1, 64)
.multiplyExact(int, int) int = exact($0 * $1, 32)
.multiplyExact/2 long = exact($0 * $1, 64)
.toIntExact/1 int = exact($0, 32)

[System]
.currentTimeMillis/0 long = current_time_millis()
.nanoTime/0 long = time.perf_counter_ns()
.getenv/1 String = os.environ.get($0)
.getProperty/2 String = os.environ.get($0, $1)
.lineSeparator/0 String = "\n"
.exit/1! void = sys.exit($0)
.identityHashCode/1 int = id($0)

[PrintStream]
println/0! void = print()
println(float)! void = print(float_text($0))
println(char[])! void = print("".join($0))
print(float)! void = print(float_text($0), end="")
print(char[])! void = print("".join($0), end="")
println/1! void = print(to_text($0))
print/1! void = print(to_text($0), end="")
printf/*! void = print(format_text($*), end="")
format/*! void = print(format_text($*), end="")
flush/0! void = sys.stdout.flush()

[ErrorStream]
println/0! void = print(file=sys.stderr)
println/1! void = print(to_text($0), file=sys.stderr)
print/1! void = print(to_text($0), end="", file=sys.stderr)
printf/*! void = print(format_text($*), end="", file=sys.stderr)

[Thread]
.sleep/1! void = time.sleep($0 / 1000)
.yield/0! void = None
.currentThread/0 T = threading.current_thread()
getName/0 String = $this.name
getId/0 long = $this.ident
interrupt/0! void = None

[FileInputStream]
new(String) InputStream = open($0, "rb")
[InputStream FileInputStream]
close/0! void = $this.close()
[InetSocketAddress]
new/2 T = ($0, $1)
[Yaml]
new/0 T = yaml
load/1 Map<String,Object> = $this.safe_load($0)

[ObjectReader]
.getInt/1 Integer = read_int($0)
.getInt/2 Integer = read_int($0, $1)
.getLong/2 Long = read_int($0, $1)
.getDouble/2 Double = read_double($0, $1)
.getString/1 String = read_string($0)
.getString/2 String = read_string($0, $1)
.getBoolean/2 boolean = read_boolean($0, $1)

[Utils]
.sleep/1! void = time.sleep($0 / 1000)

[TimeUnit]
sleep/1! void = time.sleep($this * $0 / 1000)
toMillis/1 long = $this * $0
toSeconds/1 long = quotient($this * $0, 1000)
toMinutes/1 long = quotient($this * $0, 60000)
toHours/1 long = quotient($this * $0, 3600000)
toDays/1 long = quotient($this * $0, 86400000)
.MILLISECONDS TimeUnit = 1
.SECONDS TimeUnit = 1000
.MINUTES TimeUnit = 60000
.HOURS TimeUnit = 3600000
.DAYS TimeUnit = 86400000

[Throwable]
getMessage/0 String = message_of($this)
getLocalizedMessage/0 String = message_of($this)
getCause/0 Throwable = $this.__cause__
printStackTrace/0! void = print_stack_trace($this)
toString/0 String = exception_text($this)

[Enum]
name/0 String = $this.name
ordinal/0 int = $this.value
compareTo/1 int = $this.value - $0.value
.values/0 E[] = list($this)
.valueOf/1 E = enum_value($this, $0)

[Comparable]
compareTo/1 int = compare($this, $0)

[Runnable]
run/0 void = $this()
[Callable Supplier]
call/0 A = $this()
get/0 A = $this()
[java.util.function.Function UnaryOperator ToIntFunction ToLongFunction ToDoubleFunction]
apply/1 B = $this($0)
applyAsInt/1 int = $this($0)
applyAsLong/1 long = $this($0)
applyAsDouble/1 double = $this($0)
[JFunction]
.identity/0 λ = same_value
andThen/1 JFunction<A,R> = and_then($this, $0) | B
compose/1 JFunction<A,B> = and_then($0, $this)
apply/1 B = $this($0)
[BiFunction]
apply/2 C = $this($0, $1)
[UnaryOperator]
apply/1 A = $this($0)
andThen/1 JFunction<A,R> = and_then($this, $0) | A
[BinaryOperator]
apply/2 A = $this($0, $1)
[Predicate IntPredicate]
negate/0 T = negate($this)
and/1 T = both($this, $0) | A
or/1 T = either($this, $0) | A
test/1 boolean = $this($0)
[BiPredicate]
test/2 boolean = $this($0, $1)
[JConsumer]
accept/1 void = $this($0)
[BiConsumer]
accept/2 void = $this($0, $1)
[IntFunction]
apply/1 A = $this($0)
[IntUnaryOperator]
applyAsInt/1 int = $this($0)
[IntBinaryOperator]
applyAsInt/2 int = $this($0, $1)

[Class]
getSimpleName/0 String = $this.__name__

[Logger Log]
trace/* void = log_trace($this, $*)
debug/* void = log_debug($this, $*)
info/* void = log_info($this, $*)
warn/* void = log_warning($this, $*)
error/* void = log_error($this, $*)
isDebugEnabled/0 boolean = $this.isEnabledFor(logging.DEBUG)
isInfoEnabled/0 boolean = $this.isEnabledFor(logging.INFO)
isTraceEnabled/0 boolean = $this.isEnabledFor(5)

[LoggerFactory Logger LogFactory]
.getLogger(String) Logger = logging.getLogger($0)
.getLogger/1 Logger = logging.getLogger(__name__)
.getLog/1 Logger = logging.getLogger(__name__)

[FirstPollOffsetStrategy]
.EARLIEST String = "EARLIEST"
.LATEST String = "LATEST"
.UNCOMMITTED_EARLIEST String = "UNCOMMITTED_EARLIEST"
.UNCOMMITTED_LATEST String = "UNCOMMITTED_LATEST"

[ConsumerConfig]
.GROUP_ID_CONFIG String = "group.id"
.MAX_PARTITION_FETCH_BYTES_CONFIG String = "max.partition.fetch.bytes"
.KEY_DESERIALIZER_CLASS_CONFIG String = "key.deserializer"
.VALUE_DESERIALIZER_CLASS_CONFIG String = "value.deserializer"

[Types]
.BIT int = -7
.TINYINT int = -6
.SMALLINT int = 5
.INTEGER int = 4
.BIGINT int = -5
.FLOAT int = 6
.REAL int = 7
.DOUBLE int = 8
.CHAR int = 1
.VARCHAR int = 12
.LONGVARCHAR int = -1
.DATE int = 91
.TIMESTAMP int = 93
.BINARY int = -2
.VARBINARY int = -3

[ConsumerRecord]
key/0 A = $this.key
value/0 B = $this.value
topic/0 String = $this.topic
partition/0 int = $this.partition
offset/0 long = $this.offset
timestamp/0 long = $this.millis
"""
