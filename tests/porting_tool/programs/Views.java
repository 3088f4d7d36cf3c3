import java.util.*;
import java.util.stream.*;

public class Views {
    static class Event implements Comparable<Event> {
        final String id; final int time;
        Event(String id, int time) { this.id = id; this.time = time; }
        public int compareTo(Event o) { return Integer.compare(time, o.time); }
        @Override public boolean equals(Object o) { return o instanceof Event && ((Event) o).id.equals(id); }
        @Override public int hashCode() { return id.hashCode(); }
        @Override public String toString() { return id + time; }
    }

    static <K, V> void show(String what, Map<K, V> map) { System.out.println(what + " " + map + " " + map.size()); }

    public static void main(String[] args) {
        TreeMap<Integer, String> map = new TreeMap<>();
        for (int i = 0; i < 8; i++) { map.put(i, "v" + i % 3); }
        SortedMap<Integer, String> head = map.headMap(3); NavigableMap<Integer, String> tail = map.tailMap(5, false);
        NavigableMap<Integer, String> back = map.descendingMap(); SortedMap<Integer, String> middle = map.subMap(2, 6);
        map.put(-1, "new"); head.remove(1); tail.put(9, "nine"); map.remove(4);
        show("head", head); show("tail", tail); show("back", back); show("middle", middle); show("map", map);
        System.out.println(head.firstKey() + " " + tail.lastKey() + back.firstKey() + middle.lastKey() + tail.containsKey(5) + head.get(7));
        try { head.put(7, "x"); } catch (IllegalArgumentException e) { System.out.println("refused"); }
        map.values().removeIf(v -> v.equals("v0")); map.keySet().remove(2); show("left", map);
        Iterator<String> it = map.values().iterator(); while (it.hasNext()) { if (it.next().equals("v2")) { it.remove(); } }
        show("left", map); tail.clear(); show("cleared", map);
        TreeSet<Event> events = new TreeSet<>(); events.add(new Event("a", 1)); events.add(new Event("a", 2)); events.add(new Event("b", 2));
        System.out.println(events + " " + events.contains(new Event("z", 1)) + events.contains(new Event("a", 5)) + events.first() + events.higher(new Event("q", 1)));
        TreeSet<Event> copied = new TreeSet<>(events); copied.remove(new Event("other", 2)); System.out.println(copied + " " + events.size());
        TreeMap<String, Integer> plain = new TreeMap<>(String.CASE_INSENSITIVE_ORDER); plain.merge("A", 1, Integer::sum); plain.merge("a", 2, Integer::sum);
        plain.computeIfAbsent("b", k -> 5); plain.putIfAbsent("B", 9); plain.remove("x"); show("no case", plain);
        TreeSet<Integer> numbers = new TreeSet<>(Arrays.asList(5, 1, 3, 9)); numbers.headSet(3, true).clear(); numbers.descendingSet().remove(9);
        System.out.println(numbers + " " + numbers.ceiling(4) + numbers.floor(4) + numbers.pollFirst() + numbers);
        Map<String, Integer> counts = new LinkedHashMap<>(); Collection<Integer> live = counts.values(); Set<Map.Entry<String, Integer>> entries = counts.entrySet();
        counts.put("x", 1); counts.put("y", 2); counts.put("z", 1);
        for (Map.Entry<String, Integer> e : entries) { e.setValue(e.getValue() * 10); }
        System.out.println(live + " " + live.contains(20) + live.stream().mapToInt(Integer::intValue).sum() + new ArrayList<>(live) + entries.size());
        live.retainAll(Arrays.asList(10)); System.out.println(counts + " " + Collections.max(live) + live.isEmpty());
        live.clear(); System.out.println(counts.isEmpty() + "" + live.size());
        String[] words = {"b", "a"}; List<String> backed = Arrays.asList(words); backed.set(0, "z"); Collections.sort(backed); System.out.println(words[0] + words[1] + backed);
        StringBuilder text = new StringBuilder(); char[] letters = {'o', 'k'}; text.append(backed).append(letters).insert(0, letters); System.out.println(text); System.out.println(letters);
    }
}
