import java.time.*;
import java.util.*;

public class Hashes {
    public static void main(String[] args) {
        Object[] values = {
            LocalDate.of(2024, 1, 31), LocalDateTime.of(2024, 3, 31, 1, 59, 59), LocalDateTime.parse("2024-01-01T10:15:00.123456"),
            Instant.ofEpochMilli(1700000000123L), Instant.ofEpochMilli(-1700000000123L), new Date(1700000000123L), new Date(-5L),
            UUID.fromString("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), UUID.fromString("81d4fae0-7dec-11d0-0765-00a0c91e6bf6"),
            Duration.ofMillis(-1500), Duration.ofMinutes(90), Optional.of("x"),
        };
        for (Object value : values) { System.out.println(value.hashCode()); }
        Map<LocalDate, Integer> days = new HashMap<>();
        for (int i = 0; i < 40; i++) { days.merge(LocalDate.of(2024, 1, 1).plusDays(i * 17), 1, Integer::sum); }
        System.out.println(days);
        for (long ms : new long[]{0, 1, 1500, 61000, 3600000, 3661001, 90061000, -1, -500, -90500, -3600000}) {
            System.out.print(Duration.ofMillis(ms) + " ");
        }
        System.out.println(Duration.ofSeconds(61).equals(Duration.ofMillis(61000)) + " " + Optional.of("x").equals(Optional.of("x")));
        PriorityQueue<Integer> queue = new PriorityQueue<>(Comparator.reverseOrder());
        for (int i : new int[]{3, 9, 1, 5, 7, 2}) { queue.add(i); }
        System.out.println("queue " + queue);
        System.out.println(String.format("%s %<s %d %<05d %s", "a", 7, "z") + String.format("%2$s %<s %s", "a", "b"));
    }
}
