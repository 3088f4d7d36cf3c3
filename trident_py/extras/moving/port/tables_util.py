"""Table of the library: java.util."""

UTIL = r"""
[Iterable]
forEach/1! void = for_each($this, $0) | E
iterator/0 Iterator<E> = JavaIterator($this)

[Collection]
size/0 int = len($this)
isEmpty/0 boolean = not $this
contains/1 boolean = $0 in $this
stream/0 JStream<E> = stream($this)
parallelStream/0 JStream<E> = stream($this)
addAll/1! void = add_all($this, $0)
addAll/1 boolean = add_all($this, $0)
containsAll/1 boolean = all(one in $this for one in $0)
clear/0! void = $this.clear()
removeIf/1 boolean = remove_if($this, $0) | E
toArray/0 Object[] = list($this)
toArray/1 E[] = list($this)
removeAll/1 boolean = remove_all($this, $0)
retainAll/1 boolean = retain_all($this, $0)
equals/1 boolean = $this == $0

[List]
new/0 T = []
new(int) T = []
new/1 T = list($0)
set/2! void = $this[checked($0)] = $1
set/2 E = set_item($this, $0, $1)
add/1! void = $this.append($0)
add/1 boolean = add($this, $0)
add/2! void = insert($this, $0, $1)
remove(int) E = $this.pop(checked($0))
remove/1 boolean = remove_value($this, $0)
remove(int)! void = $this.pop(checked($0))
listIterator/0 ListIterator<E> = JavaIterator($this)
indexOf/1 int = index_of($this, $0)
lastIndexOf/1 int = last_index_of($this, $0)
subList/2 List<E> = sub_list($this, $0, $1)
sort/1! void = sort($this, $0) | E,E
replaceAll/1! void = replace_values($this, $0) | E
.of/* List<A0> = [$*]
.copyOf/1 List<E0> = list($0)
ensureCapacity/1! void = None
trimToSize/0! void = None

[LinkedList Stack Deque]
new/0 T = LinkedList()
new(int) T = LinkedList()
new/1 T = LinkedList($0)
addFirst/1 void = $this.insert(0, $0)
addLast/1 void = $this.append($0)
add/1! void = $this.append($0)
offer/1! void = $this.append($0)
offerLast/1! void = $this.append($0)
offerFirst/1! void = $this.insert(0, $0)
poll/0 E = $this.poll()
pollFirst/0 E = $this.poll()
pollLast/0 E = $this.pollLast()
remove/0 E = $this.removeFirst()
removeFirst/0 E = $this.removeFirst()
removeLast/0 E = $this.removeLast()
peek/0 E = $this.peek()
peekFirst/0 E = $this.peek()
peekLast/0 E = $this.peekLast()
getFirst/0 E = $this.getFirst()
getLast/0 E = $this.getLast()
element/0 E = $this.getFirst()

[Deque]
remove/1 boolean = remove_value($this, $0)

[LinkedList Deque]
push/1 void = $this.insert(0, $0)
pop/0 E = $this.removeFirst()

[Stack]
push/1! void = $this.append($0)
pop/0 E = $this.removeLast()
peek/0 E = $this.peekLast()
empty/0 boolean = not $this

[PriorityQueue]
new/0 T = PriorityQueue()
new(int) T = PriorityQueue()
new/1 T = PriorityQueue($0) | E,E
new/2 T = PriorityQueue($1) | ; E,E
add/1 boolean = $this.add($0)
offer/1 boolean = $this.add($0)
poll/0 E = $this.poll()
remove/0 E = $this.poll()
peek/0 E = $this.peek()

[Set]
add/1 boolean = $this.add($0)
remove/1 boolean = $this.remove($0)
.of/* Set<A0> = HashSet([$*])
.copyOf/1 Set<E0> = HashSet($0)
new/0 T = HashSet()
new(int) T = HashSet($0)
new/1 T = HashSet($0)

[LinkedHashSet]
new/0 T = LinkedHashSet()
new(int) T = LinkedHashSet()
new/1 T = LinkedHashSet($0)

[TreeSet]
new/0 T = TreeSet()
new(TreeSet) T = $0.copy()
new/1 T = TreeSet($0) | E,E
first/0 E = $this.first()
last/0 E = $this.last()
pollFirst/0 E = $this.pollFirst()
pollLast/0 E = $this.pollLast()
ceiling/1 E = $this.ceiling($0)
floor/1 E = $this.floor($0)
higher/1 E = $this.higher($0)
lower/1 E = $this.lower($0)
headSet/1 TreeSet<E> = $this.headSet($0)
tailSet/1 TreeSet<E> = $this.tailSet($0)
headSet/2 TreeSet<E> = $this.headSet($0, $1)
tailSet/2 TreeSet<E> = $this.tailSet($0, $1)
subSet/2 TreeSet<E> = $this.tailSet($0).headSet($1)
descendingSet/0 TreeSet<E> = $this.descending()

[Map]
get/1 V = $this.get($0)
getOrDefault/2 V = $this.get($0, $1)
put/2! void = $this[$0] = $1
put/2 V = put($this, $0, $1)
putAll/1! void = $this.update($0)
putIfAbsent/2 V = put_if_absent($this, $0, $1)
containsKey/1 boolean = $0 in $this
containsValue/1 boolean = $0 in $this.values()
remove/1 V = $this.pop($0, None)
remove/1! void = $this.pop($0, None)
size/0 int = len($this)
isEmpty/0 boolean = not $this
clear/0! void = $this.clear()
keySet/0 Set<K> = key_set($this)
values/0 Collection<V> = values_of($this)
entrySet/0 Set<Map.Entry<K,V>> = entry_set($this)
forEach/1! void = for_each_entry($this, $0) | K,V
computeIfAbsent/2 V = compute_if_absent($this, $0, $1) | ; K
computeIfPresent/2 V = compute_if_present($this, $0, $1) | ; K,V
compute/2 V = compute($this, $0, $1) | ; K,V
merge/3 V = merge($this, $0, $1, $2) | ; ; V,V
replaceAll/1! void = replace_entries($this, $0) | K,V
equals/1 boolean = $this == $0
.of/0 Map = HashMap()
.of/* Map<A0,A1> = map_of($*)
.entry/2 Map.Entry<A0,A1> = MapEntry($0, $1)
.copyOf/1 Map = HashMap($0)
new/0 T = HashMap()
new(int) T = HashMap($0)
new/1 T = HashMap($0)
new/2 T = HashMap($0)

[EnumMap]
new/1 T = TreeMap()

[LinkedHashMap]
new/3 T = LinkedHashMap($0, $1, $2)
new/0 T = {}
new(int) T = {}
new/1 T = dict($0)

[ConcurrentHashMap]
new/0 T = ConcurrentHashMap()
new(int) T = ConcurrentHashMap($0)
new/1 T = ConcurrentHashMap($0)

[TreeMap]
new/0 T = TreeMap()
new(TreeMap) T = $0.copy()
new/1 T = TreeMap($0) | K,K
firstKey/0 K = $this.firstKey()
lastKey/0 K = $this.lastKey()
firstEntry/0 Map.Entry<K,V> = $this.firstEntry()
lastEntry/0 Map.Entry<K,V> = $this.lastEntry()
pollFirstEntry/0 Map.Entry<K,V> = $this.pollFirstEntry()
floorKey/1 K = $this.floorKey($0)
ceilingKey/1 K = $this.ceilingKey($0)
lowerKey/1 K = $this.lowerKey($0)
higherKey/1 K = $this.higherKey($0)
floorEntry/1 Map.Entry<K,V> = $this.floorEntry($0)
ceilingEntry/1 Map.Entry<K,V> = $this.ceilingEntry($0)
headMap/1 TreeMap<K,V> = $this.headMap($0)
tailMap/1 TreeMap<K,V> = $this.tailMap($0)
headMap/2 TreeMap<K,V> = $this.headMap($0, $1)
tailMap/2 TreeMap<K,V> = $this.tailMap($0, $1)
subMap/2 TreeMap<K,V> = $this.tailMap($0).headMap($1)
subMap/4 TreeMap<K,V> = $this.tailMap($0, $1).headMap($2, $3)
descendingMap/0 TreeMap<K,V> = $this.descendingMap()
descendingKeySet/0 Set<K> = key_set($this.descendingMap())

[Map.Entry]
new/2 T = MapEntry($0, $1)
getKey/0 K = $this.getKey()
getValue/0 V = $this.getValue()
setValue/1 V = $this.setValue($0)
.comparingByKey/0 Comparator<E> = comparing(MapEntry.getKey)
.comparingByValue/0 Comparator<E> = comparing(MapEntry.getValue)
.comparingByKey/1 Comparator<E> = comparing(MapEntry.getKey, $0)
.comparingByValue/1 Comparator<E> = comparing(MapEntry.getValue, $0)

[Iterator]
hasNext/0 boolean = $this.hasNext()
next/0 E = $this.next()
remove/0! void = $this.remove()
set/1! void = $this.set($0)

[Optional]
.of/1 Optional<A0> = Optional(require($0))
.ofNullable/1 Optional<A0> = Optional($0)
.empty/0 Optional<Object> = Optional(None)
isPresent/0 boolean = $this.isPresent()
isEmpty/0 boolean = not $this.isPresent()
get/0 E = $this.get()
getAsInt/0 int = $this.get()
getAsLong/0 long = $this.get()
getAsDouble/0 double = $this.get()
orElse/1 E = $this.orElse($0)
orElseGet/1 E = $this.orElseGet($0) |
orElseThrow/0 E = $this.get()
orElseThrow/1 E = $this.orElseThrow($0)
map/1 Optional<R> = $this.map($0) | E
flatMap/1 Optional<RE> = $this.flatMap($0) | E
filter/1 T = $this.filter($0) | E
ifPresent/1! void = $this.ifPresent($0) | E

[Arrays]
.asList(int[]) List<int[]> = [$0]
.asList/* List<A0> = [$*]
.toString(float[]) String = to_text(list(map(float_text, $0)))
.toString(byte[]) String = to_text([to_byte(value) for value in $0])
.toString/1 String = to_text($0)
.deepToString/1 String = to_text($0)
.sort/1! void = sort($0)
.sort/2! void = sort($0, $1) | ; E0,E0
.fill/2! void = fill($0, $1)
.copyOf(int[]...) A0 = copy_of($0, $1, 0)
.copyOfRange(int[]...) A0 = copy_of_range($0, $1, $2, 0)
.copyOf(long[]...) A0 = copy_of($0, $1, 0)
.copyOfRange(long[]...) A0 = copy_of_range($0, $1, $2, 0)
.copyOf(short[]...) A0 = copy_of($0, $1, 0)
.copyOfRange(short[]...) A0 = copy_of_range($0, $1, $2, 0)
.copyOf(double[]...) A0 = copy_of($0, $1, 0.0)
.copyOfRange(double[]...) A0 = copy_of_range($0, $1, $2, 0.0)
.copyOf(float[]...) A0 = copy_of($0, $1, 0.0)
.copyOfRange(float[]...) A0 = copy_of_range($0, $1, $2, 0.0)
.copyOf(boolean[]...) A0 = copy_of($0, $1, False)
.copyOfRange(boolean[]...) A0 = copy_of_range($0, $1, $2, False)
.copyOf(char[]...) A0 = copy_of($0, $1, "\0")
.copyOfRange(char[]...) A0 = copy_of_range($0, $1, $2, "\0")
.copyOf/2 A0 = copy_of($0, $1)
.copyOfRange/3 A0 = copy_of_range($0, $1, $2)
.equals/2 boolean = $0 == $1
.hashCode/1 int = hash_code($0)
.stream(int[]) IntStream = stream($0)
.stream(long[]) LongStream = stream($0)
.stream(double[]) DoubleStream = stream($0)
.stream/1 JStream<E0> = stream($0)

[Collections]
.emptyList/0 List = []
.emptyMap/0 Map = HashMap()
.emptySet/0 Set = HashSet()
.singletonList/1 List<A0> = [$0]
.singleton/1 Set<A0> = HashSet([$0])
.singletonMap/2 Map<A0,A1> = map_of($0, $1)
.unmodifiableList/1 List<E0> = $0
.unmodifiableMap/1 A0 = $0
.unmodifiableSet/1 A0 = $0
.unmodifiableCollection/1 A0 = $0
.synchronizedList/1 A0 = $0
.synchronizedMap/1 A0 = $0
.sort/1! void = sort($0)
.sort/2! void = sort($0, $1) | ; E0,E0
.reverse/1! void = $0.reverse()
.reverseOrder/0 Comparator<E> = reverse_order
.reverseOrder/1 Comparator<E> = reverse_of($0)
.max/1 E0 = maximum($0)
.min/1 E0 = minimum($0)
.max/2 E0 = maximum($0, $1) | ; E0,E0
.min/2 E0 = minimum($0, $1) | ; E0,E0
.shuffle/2! void = shuffle($0, $1)
.swap/3! void = swap($0, $1, $2)
.addAll/*! void = add_each($*)
.disjoint/2 boolean = not any(one in $1 for one in $0)
.frequency/2 int = frequency($0, $1)
.nCopies/2 List<A1> = [$1] * $0

[Comparator]
compare/2 int = $this($0, $1)
reversed/0 T = reverse_of($this)
thenComparing/1 T = then_comparing($this, $0) | E
thenComparing/2 T = then_comparing($this, $0, $1) | E
thenComparingInt/1 T = then_comparing($this, $0) | E
thenComparingLong/1 T = then_comparing($this, $0) | E
thenComparingDouble/1 T = then_comparing($this, $0) | E
.naturalOrder/0 Comparator<E> = compare
.reverseOrder/0 Comparator<E> = reverse_order
.comparing/1 Comparator<E> = comparing($0) | E
.comparing/2 Comparator<E> = comparing($0, $1) | E
.comparingInt/1 Comparator<E> = comparing($0) | E
.comparingLong/1 Comparator<E> = comparing($0) | E
.comparingDouble/1 Comparator<E> = comparing($0) | E

[Random]
new/0 T = Random()
new/1 T = Random($0)
.current/0 Random = Random()
nextInt/0 int = $this.nextInt()
nextInt/1 int = $this.nextInt($0)
nextInt/2 int = $this.nextInt($0, $1)
nextLong/0 long = $this.nextLong()
nextDouble/0 double = $this.nextDouble()
nextDouble/2 double = $this.nextDouble($0, $1)
nextBoolean/0 boolean = $this.nextBoolean()
nextGaussian/0 double = $this.nextGaussian()
nextFloat/0 float = $this.nextFloat()
setSeed/1 void = $this.setSeed($0)

[AtomicInteger AtomicLong AtomicBoolean AtomicReference]
new/1 T = Atomic($0)
set/1 void = $this.set($0)
[AtomicInteger AtomicLong]
new/0 T = Atomic(0)
[AtomicInteger]
get/0 int = $this.value
intValue/0 int = $this.value
incrementAndGet/0 int = $this.add(1)
decrementAndGet/0 int = $this.add(-1)
addAndGet/1 int = $this.add($0)
getAndIncrement/0 int = $this.add(1) - 1
getAndAdd/1 int = $this.getAndAdd($0)
getAndSet/1 int = $this.getAndSet($0)
[AtomicLong]
get/0 long = $this.value
longValue/0 long = $this.value
incrementAndGet/0 long = $this.add(1)
decrementAndGet/0 long = $this.add(-1)
addAndGet/1 long = $this.add($0)
getAndIncrement/0 long = $this.add(1) - 1
getAndAdd/1 long = $this.getAndAdd($0)
getAndSet/1 long = $this.getAndSet($0)
[AtomicBoolean]
new/0 T = Atomic(False)
get/0 boolean = $this.value
getAndSet/1 boolean = $this.getAndSet($0)
[AtomicReference]
new/0 T = Atomic(None)
get/0 A = $this.value

[Lists]
.newArrayList/0 List = []
.newArrayList(Iterable) List<E0> = list($0)
.newArrayList/* List<A0> = [$*]
.newLinkedList/0 LinkedList = LinkedList()
[Maps]
.newHashMap/0 Map = HashMap()
.newHashMap/1 A0 = HashMap($0)
.newLinkedHashMap/0 LinkedHashMap = {}
.newTreeMap/0 TreeMap = TreeMap()
.newConcurrentMap/0 Map = ConcurrentHashMap()
[Sets]
.newHashSet/0 Set = HashSet()
[ImmutableList]
.of/* List<A0> = [$*]
.copyOf/1 List<E0> = list($0)
[StringUtils]
.isEmpty/1 boolean = not $0
.isNotEmpty/1 boolean = bool($0)
.isBlank/1 boolean = $0 is None or not strip($0)
.isNotBlank/1 boolean = $0 is not None and bool(strip($0))
.join(List, String) String = join_text($1, $0)
"""
