// batches: 3
package topologies;

import java.text.DateFormat;
import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.Date;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentOperationContext;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Times of visits as texts and as milliseconds; formats of numbers and dates. */
public class VisitTimes {
    private static final DateTimeFormatter DAY = DateTimeFormatter.ofPattern("yyyy-MM-dd");
    private static final DateTimeFormatter MINUTE = DateTimeFormatter.ofPattern("dd.MM.yyyy HH:mm");

    public static class ParseTime extends BaseFunction {
        private transient DateFormat format;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            format = new SimpleDateFormat("yyyy-MM-dd HH:mm:ss");
            format.setTimeZone(TimeZone.getTimeZone("UTC"));
            format.setLenient(false);
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            try {
                Date date = format.parse(tuple.getStringByField("begin"));
                collector.emit(new Values(date.getTime()));
            } catch (ParseException e) {
                System.err.println("no time: " + tuple.getString(0));
                collector.emit(new Values(-1L));
            }
        }
    }

    public static class Known extends BaseFilter {
        @Override
        public boolean isKeep(TridentTuple tuple) {
            return tuple.getLong(0) >= 0;
        }
    }

    public static class Describe extends BaseFunction {
        private final SimpleDateFormat hour = new SimpleDateFormat("yyyyMMddHH");

        public Describe() {
            hour.setTimeZone(TimeZone.getTimeZone("UTC"));
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            long millis = tuple.getLongByField("millis");
            int seconds = tuple.getIntegerByField("seconds");
            Instant begin = Instant.ofEpochMilli(millis);
            Instant end = begin.plusSeconds(seconds);
            LocalDateTime local = LocalDateTime.ofInstant(end, ZoneOffset.UTC);
            LocalDate day = local.toLocalDate();
            DayOfWeek weekday = day.getDayOfWeek();
            boolean weekend = weekday == DayOfWeek.SATURDAY || weekday == DayOfWeek.SUNDAY;
            long minutes = TimeUnit.SECONDS.toMinutes(seconds);
            Duration duration = Duration.between(begin, end);
            collector.emit(new Values(hour.format(new Date(millis)), day.format(DAY), local.format(MINUTE), weekend, minutes,
                duration.toHours(), ChronoUnit.DAYS.between(LocalDate.of(2020, 1, 1), day), day.plusDays(30).toString()));
        }
    }

    public static class Formats extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String page = tuple.getStringByField("page");
            int seconds = tuple.getIntegerByField("seconds");
            double share = seconds / 3600.0;
            collector.emit(new Values(
                String.format("%s took %d s", page, seconds),
                String.format("%05d|%-8s|%8s|", seconds, page, page),
                String.format(Locale.US, "%.2f %6.1f%%", share, share * 100),
                String.format("%x %X %o %c %b", seconds, seconds, seconds, page.charAt(0), seconds > 60),
                String.format("%,d", seconds * 1000L),
                share + "/" + (float) share + "/" + seconds / 7.0));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("begin", "page", "seconds"), 2,
            new Values("2024-02-28 23:59:30", "home", 45),
            new Values("2024-12-31 22:10:00", "shop", 7300),
            new Values("2023-13-45 00:00:00", "none", 1),
            new Values("1999-01-01 00:00:00", "about", 0),
            new Values("2025-06-07 11:22:33", "tea & cups", 123456));
        TridentTopology topology = new TridentTopology();
        topology.newStream("visits", spout)
            .each(new Fields("begin"), new ParseTime(), new Fields("millis"))
            .each(new Fields("millis"), new Known())
            .each(new Fields("millis", "seconds"), new Describe(),
                new Fields("hour", "day", "end", "weekend", "minutes", "hours", "days", "later"))
            .each(new Fields("page", "seconds"), new Formats(), new Fields("f1", "f2", "f3", "f4", "f5", "f6"))
            .partitionPersist(new Recorder.Factory("visits"), new Fields("page", "millis", "hour", "day", "end", "weekend",
                "minutes", "hours", "days", "later", "f1", "f2", "f3", "f4", "f5", "f6"), new Recorder.Updater());
        return topology.build();
    }
}
