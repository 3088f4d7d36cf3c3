// batches: 2
package topologies;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Texts: splitting, formats that round, regular expressions, letters beyond ASCII. */
public class TextTraps {
    public static class Splits extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            collector.emit(new Values(Arrays.<Object>asList(text.split(","), text.split(",", -1), text.split(",", 2), "".split(",").length,
                ",".split(",").length, text.split("").length, "a|b|c".split("|"), "a|b|c".split("\\|"), "a.b.c".split("[.]"),
                text.split("\\s*,\\s*"), text.trim().isEmpty(), text.isBlank(), text.strip().length(), "x1y22z".split("(?<=\\d)"))));
        }
    }

    public static class Formats extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            List<Object> found = new ArrayList<>();
            found.add(String.format("%.1f %.1f %.2f %.0f %.0f %.0f", 0.25, 0.15, 0.125, 0.5, 1.5, 2.5));
            found.add(String.format("%.3f|%10.2f|%-10.2f|%+.1f|%010.3f|%e", 1234.5678, -2.345, 2.345, 3.05, -3.14159, 12345.678));
            found.add(String.format("%s %S %10s %-10s| %.3s %c %b %n", text, text, text, text, text, 'q', text.isEmpty()).trim());
            found.add(String.format("%d %5d %-5d| %05d %+d %,d %x %08X %o %%", 42, 42, 42, 42, 42, 1234567, 255, 48879, 8));
            found.add(String.format(Locale.ENGLISH, "%2$s %1$s %2$s %s", "a", "b"));
            found.add(String.format("%s %s %s %s", null, 1.0f, List.of(1, 2), new int[0].length));
            found.add(String.format("%d%%|%3d%%|%s", 7L, (byte) 7, 'x'));
            found.add(Math.round(0.49999999999999994) + " " + Math.round(-2.5) + " " + Math.round(2.5f) + " " + Math.rint(2.5));
            found.add(1e7 + " " + 1.0E-4 + " " + 0.001 + " " + 123456789.0 + " " + 1e21 + " " + 100.0f + " " + 1.1f * 1.1f + " " + (double) 1.1f);
            found.add(Double.toString(-0.0) + Double.MIN_VALUE + Float.MAX_VALUE + Double.valueOf("1e3") + Double.parseDouble(" 7 "));
            collector.emit(new Values(found));
        }
    }

    public static class Letters extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            String emoji = text + "\uD83D\uDE00!";
            StringBuilder each = new StringBuilder();
            for (int i = 0; i < text.length(); i++) {
                each.append((int) text.charAt(i)).append(' ');
            }
            StringBuilder points = new StringBuilder();
            emoji.codePoints().forEach(point -> points.append(point).append(';'));
            collector.emit(new Values(Arrays.<Object>asList(text.length(), emoji.codePointCount(0, emoji.length()), each.toString(),
                points.toString(), emoji.hashCode(), "stra\u00dfe".toUpperCase(), "\u0130I".toLowerCase(Locale.ROOT).length(),
                new StringBuilder(emoji).reverse().toString(), emoji.getBytes(StandardCharsets.UTF_8).length, emoji.endsWith("!"),
                Character.isLetter('\u00e9'), Character.isDigit('\u0663'), Character.toUpperCase('\u00ff'), "\u00e9".compareTo("z"),
                "Z".compareTo("a"), "apple".compareTo("app"), text.chars().filter(c -> c > 127).count(), "\t x\u00a0".trim().length())));
        }
    }

    public static class Pieces extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            StringBuilder sb = new StringBuilder(text);
            sb.append(1).append('c').append(2.5).append(true).append((Object) null).append(new char[] {'o', 'k'}).replace(0, 1, "<>").setLength(6);
            char[] letters = "hello".toCharArray();
            Arrays.sort(letters);
            letters[0]++;
            String joined = new String(letters);
            String repeated = "ab".repeat(3) + String.valueOf(letters, 1, 2) + String.valueOf(3.0) + String.valueOf('c') + "x".concat("y");
            String escaped = "tab\there \"quoted\" back\\slash \u0041\101";
            String block = """
                first line
                  second "line" \
                goes on
                """;
            collector.emit(new Values(Arrays.<Object>asList(sb.toString(), joined, repeated, escaped, block, "a-b_c d".replaceAll("[-_ ]", ""),
                "2024-01-31".replaceAll("(\\d+)-(\\d+)-(\\d+)", "$3/$2/$1"), "a.b".replace(".", "$1"), "Mississippi".lastIndexOf("ss"),
                "Mississippi".indexOf('s', 4), "Mississippi".substring(3).substring(0, 2), "x".equals(null), "abc".contains(""),
                "AbC".chars().sum(), "one two  three".split(" ").length, "k=v=w".substring("k=v=w".indexOf('=') + 1), "%d".formatted(5),
                "A,b;C".split("[,;]"), "test".matches("t.*t"), "test".matches("es"), "a\nb\r\nc".lines().count(), "  x ".stripLeading(),
                "b".compareToIgnoreCase("A"), "\\d".length())));
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("text"), 2, new Values("a, b,,c,,"), new Values("Upper \u00c4pfel"), new Values(" "));
        var texts = topology.newStream("texts", spout);
        texts.each(new Fields("text"), new Splits(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("splits"), new Fields("text", "found"), new Recorder.Updater());
        texts.each(new Fields("text"), new Formats(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("formats"), new Fields("text", "found"), new Recorder.Updater());
        texts.each(new Fields("text"), new Letters(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("letters"), new Fields("text", "found"), new Recorder.Updater());
        texts.each(new Fields("text"), new Pieces(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("pieces"), new Fields("text", "found"), new Recorder.Updater());
        return topology.build();
    }
}
