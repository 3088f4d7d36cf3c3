"""Table of the library: texts, patterns, JSON, dates."""

TEXT = r"""
[CharSequence]
length/0 int = len($this)
isEmpty/0 boolean = not $this

[String]
isBlank/0 boolean = not strip($this)
equals(String) boolean = $this == $0
equalsIgnoreCase/1 boolean = equals_ignore_case($this, $0)
compareTo/1 int = compare_text($this, $0)
compareToIgnoreCase/1 int = compare_text($this.lower(), $0.lower())
toString/0 String = $this
substring/1 String = substring($this, $0)
substring/2 String = substring($this, $0, $1)
subSequence/2 String = substring($this, $0, $1)
indexOf(char) int = $this.find($0)
indexOf(String) int = $this.find($0)
indexOf(String, int) int = $this.find($0, max($1, 0))
indexOf(char, int) int = $this.find($0, max($1, 0))
lastIndexOf(char) int = $this.rfind($0)
lastIndexOf(String) int = $this.rfind($0)
contains/1 boolean = $0 in $this
startsWith/1 boolean = $this.startswith($0)
startsWith/2 boolean = $1 >= 0 and $this.startswith($0, $1)
endsWith/1 boolean = $this.endswith($0)
toUpperCase/* String = $this.upper()
toLowerCase/* String = $this.lower()
trim/0 String = trim($this)
strip/0 String = strip($this)
stripLeading/0 String = strip_leading($this)
stripTrailing/0 String = strip_trailing($this)
codePoints/0 IntStream = stream(code_points($this))
codePointCount/2 int = len(code_points(substring($this, $0, $1)))
concat/1 String = $this + $0
replace/2 String = $this.replace($0, $1)
replaceAll/2 String = replace_all($this, $0, $1)
replaceFirst/2 String = replace_first($this, $0, $1)
split/1 String[] = split($this, $0)
split/2 String[] = split($this, $0, $1)
matches/1 boolean = matches($this, $0)
toCharArray/0 char[] = list($this)
getBytes/* byte[] = get_bytes($this, $*)
intern/0 String = $this
repeat/1 String = repeat($this, $0)
chars/0 IntStream = stream(map(ord, $this))
lines/0 JStream<String> = stream(lines_of($this))
formatted/* String = format_text($this, $*)
codePointAt/1 int = ord(char_at($this, $0))
.valueOf(char[]) String = "".join($0)
.valueOf(char[], int, int) String = "".join($0[$1 : $1 + $2])
.valueOf(float) String = float_text($0)
.valueOf/1 String = to_text($0)
.format(String) String = format_text($*)
.format/* String = format_text($*)
.format(Locale...) String = format_located($*)
.join/* String = join_text($*)
.copyValueOf/1 String = "".join($0)
new/0 String = ""
new(String) String = $0
new(char[]) String = "".join($0)
new(byte[]) String = decode($0)
new(byte[], String) String = decode($0, $1)
new(byte[], Charset) String = decode($0, $1)
new/1 String = to_text($0)
.CASE_INSENSITIVE_ORDER Comparator<String> = compare_ignoring_case

[StringBuilder]
new/0 T = StringBuilder()
new(String) T = StringBuilder($0)
new(int) T = StringBuilder()
append(float) T = $this.append(float_text($0))
append(char[]) T = $this.append("".join($0))
append/1 T = $this.append($0)
append(CharSequence, int, int) T = $this.append(substring($0, $1, $2))
insert(int, float) T = $this.insert($0, float_text($1))
insert(int, char[]) T = $this.insert($0, "".join($1))
insert/2 T = $this.insert($0, $1)
reverse/0 T = $this.reverse()
toString/0 String = str($this)
charAt/1 char = $this.charAt($0)
setCharAt/2 void = $this.setCharAt($0, $1)
deleteCharAt/1 T = $this.deleteCharAt($0)
delete/2 T = $this.delete($0, $1)
replace/3 T = $this.replace($0, $1, $2)
setLength/1 void = $this.setLength($0)
indexOf/1 int = str($this).find($0)
substring/1 String = substring(str($this), $0)
substring/2 String = substring(str($this), $0, $1)
isEmpty/0 boolean = len($this) == 0

[StringJoiner]
new/1 T = StringJoiner($0)
new/3 T = StringJoiner($0, $1, $2)
add/1 T = $this.add($0)
toString/0 String = str($this)
length/0 int = len(str($this))

[StringTokenizer]
new/1 T = StringTokenizer($0)
new/2 T = StringTokenizer($0, $1)
hasMoreTokens/0 boolean = $this.hasMoreTokens()
hasMoreElements/0 boolean = $this.hasMoreTokens()
nextToken/0 String = $this.nextToken()
nextElement/0 Object = $this.nextToken()
countTokens/0 int = $this.countTokens()

[Pattern]
.compile/1 Pattern = compile_pattern($0)
.compile/2 Pattern = compile_pattern($0, $1)
.matches/2 boolean = matches($1, $0)
.quote/1 String = re.escape($0)
.CASE_INSENSITIVE int = re.IGNORECASE
matcher/1 Matcher = Matcher($this, $0)
pattern/0 String = $this.pattern
split/1 String[] = split($0, $this)

[Matcher]
matches/0 boolean = $this.matches()
find/0 boolean = $this.find()
lookingAt/0 boolean = $this.lookingAt()
group/0 String = $this.group()
group/1 String = $this.group($0)
groupCount/0 int = $this.groupCount()
start/0 int = $this.start()
end/0 int = $this.end()
replaceAll/1 String = $this.replaceAll($0)

[Charset StandardCharsets Charsets]
.forName/1 Charset = $0
.UTF_8 Charset = "UTF-8"
.US_ASCII Charset = "US-ASCII"
.ISO_8859_1 Charset = "ISO-8859-1"

[Locale]
.ROOT Locale = "root"
.US Locale = "US"
.ENGLISH Locale = "en"

[UUID]
.randomUUID/0 UUID = uuid.uuid4()
.fromString/1 UUID = uuid.UUID($0)
toString/0 String = str($this)

[JSONValue]
.parse/1 Object = parse_json($0)
.toJSONString/1 String = to_json($0)
[JSONParser]
new/0 T = JSONParser()
new/1 T = JSONParser()
.MODE_PERMISSIVE int = -1
.MODE_JSON_SIMPLE int = 1984
.DEFAULT_PERMISSIVE_MODE int = -1
parse/1 Object = $this.parse($0)
[JSONObject JSONArray]
toJSONString/0 String = to_json($this)
toString/0 String = to_json($this)
[JSONObject]
new/0 T = JSONObject()
new/1 T = JSONObject($0)
[JSONArray]
new/0 T = JSONArray()

[OrgJSONObject OrgJSONArray]
getString/1 String = $this.getString($0)
getInt/1 int = $this.getInt($0)
getLong/1 long = $this.getLong($0)
getDouble/1 double = $this.getDouble($0)
get/1 Object = $this.getValue($0)
getJSONObject/1 OrgJSONObject = $this.getJSONObject($0)
getJSONArray/1 OrgJSONArray = $this.getJSONArray($0)
length/0 int = len($this)
toString/0 String = str($this)
[OrgJSONObject]
new/0 T = OrgJSONObject()
new(String) T = OrgJSONObject.parse($0)
getBoolean/1 boolean = $this.getBoolean($0)
opt/1 Object = $this.opt($0)
optString/1 String = $this.optString($0)
optString/2 String = $this.optString($0, $1)
optInt/1 int = $this.optInt($0)
optInt/2 int = $this.optInt($0, $1)
optLong/1 long = $this.optLong($0)
optLong/2 long = $this.optLong($0, $1)
optDouble/2 double = $this.optDouble($0, $1)
optBoolean/1 boolean = $this.optBoolean($0)
optBoolean/2 boolean = $this.optBoolean($0, $1)
optJSONObject/1 OrgJSONObject = $this.optJSONObject($0)
optJSONArray/1 OrgJSONArray = $this.optJSONArray($0)
has/1 boolean = $this.has($0)
isNull/1 boolean = $this.isNull($0)
put/2 T = $this.put($0, $1)
keySet/0 Set<String> = $this.keySet()
[OrgJSONArray]
new/0 T = OrgJSONArray()
new(String) T = OrgJSONArray.parse($0)
put/1 T = $this.put($0)

[ObjectMapper]
new/0 T = ObjectMapper()
readTree/1 JsonNode = $this.readTree($0)
writeValueAsString/1 String = $this.writeValueAsString($0)
createObjectNode/0 ObjectNode = $this.createObjectNode()
readValue/2 A1 = $this.readValue($0)
createArrayNode/0 ArrayNode = $this.createArrayNode()
[JsonNode]
get/1 JsonNode = $this.get($0)
path/1 JsonNode = $this.path($0)
has/1 boolean = $this.has($0)
hasNonNull/1 boolean = $this.hasNonNull($0)
asText/0 String = $this.asText()
asText/1 String = $this.asText($0)
textValue/0 String = $this.textValue()
asInt/0 int = $this.asInt()
asInt/1 int = $this.asInt($0)
asLong/0 long = $this.asLong()
asLong/1 long = $this.asLong($0)
asDouble/0 double = $this.asDouble()
asDouble/1 double = $this.asDouble($0)
asBoolean/0 boolean = $this.asBoolean()
intValue/0 int = $this.intValue()
longValue/0 long = $this.longValue()
doubleValue/0 double = $this.doubleValue()
isMissingNode/0 boolean = $this.isMissingNode()
isNull/0 boolean = $this.isNull()
isArray/0 boolean = $this.isArray()
isObject/0 boolean = $this.isObject()
isTextual/0 boolean = $this.isTextual()
isNumber/0 boolean = $this.isNumber()
size/0 int = $this.size()
toString/0 String = str($this)
put/2 T = $this.put($0, $1)
set/2 T = $this.put($0, $1)
add/1 T = $this.add($0)
putArray/1 ArrayNode = $this.putArray($0)
putObject/1 ObjectNode = $this.putObject($0)

[SimpleDateFormat DateFormat]
new/1 SimpleDateFormat = SimpleDateFormat($0)
new/2 SimpleDateFormat = SimpleDateFormat($0)
setTimeZone/1 void = $this.setTimeZone($0)
setLenient/1 void = $this.setLenient($0)
format/1 String = $this.format($0)
parse/1 Date = $this.parse($0)
[TimeZone]
.getTimeZone/1 TimeZone = zone_of($0)
[ZoneId]
.of/1 ZoneId = zone_of($0)
[ZoneOffset]
.UTC ZoneId = zone_of("UTC")
[Date]
new/0 T = Date(current_time_millis())
new(long) T = Date($0)
new(int) T = Date($0)
getTime/0 long = $this.getTime()
before/1 boolean = $this.getTime() < $0.getTime()
after/1 boolean = $this.getTime() > $0.getTime()
[LocalDate LocalDateTime Instant]
isBefore/1 boolean = $this < $0
isAfter/1 boolean = $this > $0
[LocalDate LocalDateTime]
getYear/0 int = $this.year
getMonthValue/0 int = $this.month
getDayOfMonth/0 int = $this.day
getDayOfWeek/0 DayOfWeek = day_of_week($this)
format/1 String = $0.format($this)
plusDays/1 T = $this + datetime.timedelta(days=$0)
[LocalDate]
.parse/1 LocalDate = parse_date($0)
.parse/2 LocalDate = $1.parse($0).date()
.of/3 LocalDate = datetime.date($0, $1, $2)
.ofEpochDay/1 LocalDate = date_of_epoch_day($0)
minusDays/1 LocalDate = $this - datetime.timedelta(days=$0)
getDayOfYear/0 int = $this.timetuple().tm_yday
toEpochDay/0 long = epoch_day($this)
toString/0 String = $this.isoformat()
lengthOfMonth/0 int = length_of_month($this)
equals/1 boolean = $this == $0
[DayOfWeek]
.MONDAY DayOfWeek = DayOfWeek.MONDAY
.TUESDAY DayOfWeek = DayOfWeek.TUESDAY
.WEDNESDAY DayOfWeek = DayOfWeek.WEDNESDAY
.THURSDAY DayOfWeek = DayOfWeek.THURSDAY
.FRIDAY DayOfWeek = DayOfWeek.FRIDAY
.SATURDAY DayOfWeek = DayOfWeek.SATURDAY
.SUNDAY DayOfWeek = DayOfWeek.SUNDAY
[ChronoUnit]
.DAYS ChronoUnit = ChronoUnit.DAYS
.HOURS ChronoUnit = ChronoUnit.HOURS
.MINUTES ChronoUnit = ChronoUnit.MINUTES
.SECONDS ChronoUnit = ChronoUnit.SECONDS
.MILLIS ChronoUnit = ChronoUnit.MILLIS
between/2 long = between($0, $1, $this)
[JDuration]
.between/2 T = JavaDuration.between($0, $1)
.ofSeconds/1 T = JavaDuration($0 * 1000)
.ofMinutes/1 T = JavaDuration($0 * 60000)
.ofMillis/1 T = JavaDuration($0)
toMillis/0 long = $this.millis
getSeconds/0 long = $this.millis // 1000
toSeconds/0 long = $this.millis // 1000
toMinutes/0 long = quotient($this.millis, 60000)
toHours/0 long = quotient($this.millis, 3600000)
toDays/0 long = quotient($this.millis, 86400000)
[DayOfWeek Month]
getValue/0 int = $this.value
toString/0 String = $this.name
name/0 String = $this.name
[LocalDateTime]
.parse/1 LocalDateTime = parse_date_time($0)
.parse/2 LocalDateTime = $1.parse($0)
.of/* LocalDateTime = datetime.datetime($*)
.ofInstant/2 LocalDateTime = local_time($0, $1)
.ofEpochSecond/3 LocalDateTime = local_time(Instant($0, $1), $2)
getHour/0 int = $this.hour
getMinute/0 int = $this.minute
getSecond/0 int = $this.second
toLocalDate/0 LocalDate = $this.date()
plusMinutes/1 LocalDateTime = $this + datetime.timedelta(minutes=$0)
plusHours/1 LocalDateTime = $this + datetime.timedelta(hours=$0)
toString/0 String = date_time_text($this)
[Instant]
.now/0 Instant = Instant.ofEpochMilli(current_time_millis())
.ofEpochMilli/1 Instant = Instant.ofEpochMilli($0)
.ofEpochSecond/1 Instant = Instant($0)
.parse/1 Instant = Instant.parse($0)
toEpochMilli/0 long = $this.toEpochMilli()
getEpochSecond/0 long = $this.seconds
plusSeconds/1 Instant = $this.plusSeconds($0)
plusMillis/1 Instant = $this.plusMillis($0)
atZone/1 LocalDateTime = local_time($this, $0)
toString/0 String = str($this)
[DateTimeFormatter]
.ofPattern/1 DateTimeFormatter = DateTimeFormatter($0)
.ofPattern/2 DateTimeFormatter = DateTimeFormatter($0)
.ISO_LOCAL_DATE DateTimeFormatter = DateTimeFormatter("yyyy-MM-dd")
withZone/1 DateTimeFormatter = $this.withZone($0)
format/1 String = $this.format($0)
"""
