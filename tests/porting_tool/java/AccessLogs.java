// batches: 3
// unordered: printed
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringTokenizer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Lines of a web server's log, taken apart by regular expressions and by hand. */
public class AccessLogs {
    private static final Logger LOGGER = LoggerFactory.getLogger(AccessLogs.class);
    private static final String LOG_ENTRY_PATTERN =
        "^(\\S+) (\\S+) (\\S+) \\[([\\w:/]+\\s[+\\-]\\d{4})\\] \"(.+?)\" (\\d{3}) (\\d+|-)";
    private static final Pattern PATTERN = Pattern.compile(LOG_ENTRY_PATTERN);
    private static final Pattern PARAMETER = Pattern.compile("[?&](?<name>[^=&]+)=([^&#]*)");

    public static class ParseLine extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String line = tuple.getStringByField("line").trim();
            Matcher matcher = PATTERN.matcher(line);
            if (!matcher.find()) {
                LOGGER.error("Problem parsing line: {}", line.length() > 20 ? line.substring(0, 20) + "..." : line);
                return;
            }
            String[] request = matcher.group(5).split(" ");
            String bytes = matcher.group(7);
            collector.emit(new Values(matcher.group(1), request[0], request.length > 1 ? request[1] : "", Integer.parseInt(matcher.group(6)),
                "-".equals(bytes) ? 0L : Long.valueOf(bytes)));
        }
    }

    public static class Classify extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int status = tuple.getIntegerByField("status");
            String method = tuple.getStringByField("method");
            String kind;
            switch (status / 100) {
                case 2:
                    kind = "ok";
                    break;
                case 3:
                    kind = "moved";
                    break;
                case 4:
                case 5:
                    kind = "error";
                    break;
                default:
                    kind = "other";
            }
            boolean writes;
            switch (method) {
                case "POST":
                case "PUT":
                case "DELETE":
                    writes = true;
                    break;
                default:
                    writes = false;
                    break;
            }
            String level = switch (kind) {
                case "ok", "moved" -> "info";
                case "error" -> {
                    String found = status >= 500 ? "fatal" : "warn";
                    yield found;
                }
                default -> "debug";
            };
            collector.emit(new Values(kind, writes, level));
        }
    }

    public static class Path extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String path = tuple.getString(0);
            int question = path.indexOf('?');
            String plain = question >= 0 ? path.substring(0, question) : path;
            Map<String, String> parameters = new HashMap<>();
            Matcher matcher = PARAMETER.matcher(path);
            while (matcher.find()) {
                parameters.put(matcher.group("name"), matcher.group(2));
            }
            String[] parts = plain.split("/");
            String extension = plain.contains(".") ? plain.substring(plain.lastIndexOf(".") + 1).toLowerCase() : null;
            StringBuilder reversed = new StringBuilder();
            for (int i = parts.length - 1; i > 0; i--) {
                if (reversed.length() > 0) {
                    reversed.append('.');
                }
                reversed.append(parts[i]);
            }
            String clean = plain.replace("//", "/").replaceAll("[0-9]+", "#").replaceFirst("^/", "");
            collector.emit(new Values(parts.length, extension, parameters, reversed.toString(), clean));
        }
    }

    public static class Palindrome extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String host = tuple.getString(0);
            StringTokenizer tokens = new StringTokenizer(host, ".");
            List<String> labels = new ArrayList<>();
            while (tokens.hasMoreTokens()) {
                labels.add(tokens.nextToken());
            }
            boolean found = false;
            String same = "";
            search:
            for (int i = 0; i < labels.size(); i++) {
                String label = labels.get(i);
                for (int k = 0; k < labels.size(); k++) {
                    String other = labels.get(k);
                    if (i == k) {
                        continue;
                    }
                    if (label.equals(new StringBuilder(other).reverse().toString())) {
                        found = true;
                        same = label;
                        break search;
                    }
                    if (other.isEmpty()) {
                        continue search;
                    }
                }
            }
            StringBuilder text = new StringBuilder(host);
            text.insert(0, '<').append('>').setCharAt(1, '*');
            text.deleteCharAt(text.length() - 2);
            int dots = host.length() - host.replace(".", "").length();
            collector.emit(new Values(found, same, text.toString(), dots, String.join("-", labels), host.compareTo("10.0.0.2"),
                host.equalsIgnoreCase("A.B.A"), host.startsWith("10."), host.matches("\\d+(\\.\\d+){3}"), Arrays.toString(host.split("\\."))));
        }
    }

    /** Keeps what is no picture. */
    public static class NoPicture extends BaseFilter {
        private static final List<String> PICTURES = Arrays.asList("png", "gif", "jpg");

        @Override
        public boolean isKeep(TridentTuple tuple) {
            String extension = tuple.getString(0);
            if (PICTURES.contains(extension)) {
                LOGGER.info("left out: " + extension + ' ' + tuple.size());
                return false;
            }
            return true;
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("line"), 3,
            new Values("10.0.0.1 - ann [10/Oct/2000:13:55:36 -0700] \"GET /a/b.html?x=1&name=tea%20cup HTTP/1.0\" 200 2326"),
            new Values("12.21.7.21 - - [10/Oct/2000:13:55:37 -0700] \"POST /orders/17/items// HTTP/1.1\" 503 -"),
            new Values("  nonsense that is longer than twenty  "),
            new Values("a.B.a - - [10/Oct/2000:13:55:38 -0700] \"GET /logo.PNG HTTP/1.0\" 304 0"),
            new Values("short"),
            new Values("99.1.2.3 - bob [11/Oct/2000:00:00:00 +0000] \"DELETE /x HTTP/1.1\" 404 15"),
            new Values("host - - [11/Oct/2000:00:00:01 +0000] \"BREW\" 100 9999999999"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("lines", spout)
            .each(new Fields("line"), new ParseLine(), new Fields("host", "method", "path", "status", "bytes"))
            .each(new Fields("status", "method"), new Classify(), new Fields("kind", "writes", "level"))
            .each(new Fields("path"), new Path(), new Fields("depth", "extension", "parameters", "reversed", "clean"))
            .each(new Fields("extension"), new NoPicture())
            .each(new Fields("host"), new Palindrome(), new Fields("palindrome", "same", "marked", "dots", "joined", "compared", "aba",
                "ten", "address", "labels"))
            .partitionPersist(new Recorder.Factory("requests"), new Fields("host", "method", "path", "status", "bytes", "kind", "writes",
                "level", "depth", "extension", "parameters", "reversed", "clean", "palindrome", "same", "marked", "dots", "joined",
                "compared", "aba", "ten", "address", "labels"), new Recorder.Updater());
        return topology.build();
    }
}
