// batches: 3
package topologies;

import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Numbers as Java computes them: division, remainders, overflow, casts, shifts, characters, hashes. */
public class NumbersOfMeters {
    private static final int BUCKETS = 7;
    private static final long SEED = 1125899906842597L;
    private static final int MASK = 0xFF;

    public static class Divide extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int value = tuple.getInteger(0);
            int by = tuple.getIntegerByField("by");
            int quotient = value / by;
            int remainder = value % by;
            value /= 2;
            value %= 5;
            long wide = (long) value * by / 3;
            double half = by / 2;
            double exact = by / 2.0;
            collector.emit(new Values(quotient, remainder, value, wide, half, exact, Math.floorMod(remainder - 5, BUCKETS),
                Math.abs(remainder) % BUCKETS, by > 0 ? quotient : -quotient));
        }
    }

    public static class Overflow extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int value = tuple.getInteger(0);
            int square = value * value;
            int sum = value + Integer.MAX_VALUE;
            long product = SEED * value * 31 + 17;
            int count = 2147483646;
            count += value & 3;
            count++;
            short small = (short) value;
            byte tiny = (byte) (value >> 1);
            collector.emit(new Values(square, sum, product, count, small, tiny, -Integer.MIN_VALUE, Math.abs(Integer.MIN_VALUE + value % 1)));
        }
    }

    public static class Bits extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int value = tuple.getInteger(0);
            int hash = value;
            hash ^= hash >>> 16;
            hash *= 0x85ebca6b;
            hash ^= (hash >>> 13);
            collector.emit(new Values(value << 28, value >> 3, value >>> 3, value & MASK, value ^ ~value, hash,
                Integer.toBinaryString(value & 31), Integer.toHexString(value), Long.toString(value, 36), Integer.bitCount(value)));
        }
    }

    public static class Casts extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int value = tuple.getInteger(0);
            double d = value * 1.37;
            float f = value / 3f;
            Integer boxed = (int) d;
            collector.emit(new Values((int) d, (long) -d, Math.round(d), Math.round(d * 100) / 100.0, (int) (d * 1e10),
                Math.floor(d / 2), Math.ceil(d / 2), Math.max(value, 10L), boxed.doubleValue(), boxed.equals((int) d), (int) f,
                Double.compare(d, value), Integer.compare(value, 12), Double.isNaN(Math.sqrt(value)), String.valueOf(value * 1e7), "" + value / 8.0));
        }
    }

    public static class Characters extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String name = tuple.getStringByField("name");
            char first = name.charAt(0);
            char next = (char) (first + 1);
            int code = first - 'a';
            int sum = 0;
            StringBuilder caesar = new StringBuilder();
            for (char c : name.toCharArray()) {
                sum += c;
                if (Character.isLetter(c)) {
                    char base = Character.isUpperCase(c) ? 'A' : 'a';
                    caesar.append((char) ((c - base + 13) % 26 + base));
                } else {
                    caesar.append(c);
                }
            }
            first += 2;
            collector.emit(new Values(next, code, sum, caesar.toString(), first, name.hashCode(), Math.abs(name.hashCode() % BUCKETS),
                name.hashCode() % BUCKETS, (int) 'x' + 1, 'x' + 1, "" + 'x' + 1, Character.getNumericValue('7')));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("value", "by", "name"), 3,
            new Values(7, 2, "ampere"), new Values(-7, 2, "Volt"), new Values(7, -2, "kW/h"),
            new Values(-7, -2, "polynomial of meters"), new Values(123456789, 1000, "zzzzzzzzzz"),
            new Values(-2000000011, 7, "\u00e4ther"), new Values(0, 3, " "), new Values(65535, -16, "Aa"), new Values(46341, 46340, "BB"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("meters", spout)
            .each(new Fields("value", "by"), new Divide(),
                new Fields("q", "r", "v", "wide", "half", "exact", "floorMod", "bucket", "signed"))
            .each(new Fields("value"), new Overflow(), new Fields("o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"))
            .each(new Fields("value"), new Bits(), new Fields("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"))
            .each(new Fields("value"), new Casts(), new Fields("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11",
                "c12", "c13", "c14", "c15", "c16"))
            .each(new Fields("name"), new Characters(), new Fields("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10",
                "h11", "h12"))
            .partitionPersist(new Recorder.Factory("divided"),
                new Fields("value", "by", "q", "r", "v", "wide", "half", "exact", "floorMod", "bucket", "signed"), new Recorder.Updater(),
                new Fields());
        topology.newStream("again", spout)
            .each(new Fields("value"), new Overflow(), new Fields("o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"))
            .each(new Fields("value"), new Bits(), new Fields("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"))
            .each(new Fields("value"), new Casts(), new Fields("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11",
                "c12", "c13", "c14", "c15", "c16"))
            .each(new Fields("name"), new Characters(), new Fields("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10",
                "h11", "h12"))
            .partitionPersist(new Recorder.Factory("rest"), new Fields("value", "o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "b1",
                "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11",
                "c12", "c13", "c14", "c15", "c16", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10", "h11", "h12"),
                new Recorder.Updater());
        return topology.build();
    }
}
