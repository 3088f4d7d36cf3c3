// batches: 2
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Rooms: interfaces with default methods, abstract classes, generics, varargs, static initializers. */
public class RoomPlans {
    private static final Map<String, Supplier<Shape>> SHAPES;
    private static int made;

    static {
        Map<String, Supplier<Shape>> shapes = new LinkedHashMap<>();
        shapes.put("square", () -> new Square(3));
        shapes.put("hall", () -> new Rectangle(10, 4) {
            @Override
            public String label() {
                return "great " + super.label();
            }
        });
        shapes.put("tower", RoomPlans::tower);
        SHAPES = Collections.unmodifiableMap(shapes);
    }

    static Shape tower() {
        return new Circle(1.5);
    }

    interface Shape extends Serializable {
        double area();

        default String label() {
            return name() + "(" + area() + ")";
        }

        default boolean isLarge() {
            return area() > LIMIT;
        }

        String name();

        int LIMIT = 9;

        static Shape largest(Shape first, Shape... more) {
            Shape best = first;
            for (Shape shape : more) {
                if (shape.area() > best.area()) {
                    best = shape;
                }
            }
            return best;
        }
    }

    abstract static class Base implements Shape {
        protected final int number;

        Base() {
            number = ++made;
        }

        @Override
        public String name() {
            return getClass().getSimpleName().toLowerCase();
        }

        @Override
        public String toString() {
            return "#" + label();
        }
    }

    static class Rectangle extends Base {
        final double width;
        final double height;

        Rectangle(double width, double height) {
            super();
            this.width = width;
            this.height = height;
        }

        @Override
        public double area() {
            return width * height;
        }

        @Override
        public String name() {
            return "rectangle";
        }
    }

    static class Square extends Rectangle {
        Square(double side) {
            super(side, side);
        }

        @Override
        public String name() {
            return "square/" + super.name();
        }
    }

    static class Circle extends Base {
        private final double radius;

        Circle(double radius) {
            this.radius = radius;
        }

        @Override
        public double area() {
            return Math.PI * radius * radius;
        }

        @Override
        public boolean isLarge() {
            return false;
        }
    }

    /** A pair of any two. */
    static class Pair<A extends Comparable<A>, B> implements Comparable<Pair<A, B>>, Serializable {
        private final A first;
        private final B second;

        Pair(A first, B second) {
            this.first = first;
            this.second = second;
        }

        static <X extends Comparable<X>, Y> Pair<X, Y> of(X x, Y y) {
            return new Pair<>(x, y);
        }

        <C> Pair<A, C> with(C other) {
            return new Pair<A, C>(first, other);
        }

        public A getFirst() {
            return first;
        }

        public B getSecond() {
            return second;
        }

        @Override
        public int compareTo(Pair<A, B> other) {
            return first.compareTo(other.first);
        }
    }

    /** A ring of values. */
    static class Ring<T> implements Iterable<T> {
        private final T[] values;
        private int next;

        @SafeVarargs
        Ring(T... values) {
            this.values = values;
        }

        T turn() {
            T value = values[next];
            next = (next + 1) % values.length;
            return value;
        }

        @Override
        public Iterator<T> iterator() {
            return Arrays.asList(values).iterator();
        }
    }

    static <T> List<T> keep(Collection<? extends T> all, Predicate<? super T> test) {
        List<T> kept = new ArrayList<>();
        for (T one : all) {
            if (test.test(one)) {
                kept.add(one);
            }
        }
        return kept;
    }

    static int sum(int... numbers) {
        int total = 0;
        for (int number : numbers) {
            total += number;
        }
        return total;
    }

    static double fold(double start, BiFunction<Double, Double, Double> by, Double... values) {
        double result = start;
        for (Double value : values) {
            result = by.apply(result, value);
        }
        return result;
    }

    public static class Plan extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String kind = tuple.getString(0);
            int count = tuple.getInteger(1);
            Supplier<Shape> supplier = SHAPES.get(kind);
            if (supplier == null) {
                collector.emit(new Values("none of " + SHAPES.keySet(), false, 0.0, "", 0));
                return;
            }
            List<Shape> shapes = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                shapes.add(supplier.get());
            }
            shapes.add(new Rectangle(count, 2));
            Shape largest = Shape.largest(shapes.get(0), shapes.toArray(new Shape[0]));
            List<Shape> large = keep(shapes, Shape::isLarge);
            double total = 0;
            for (Shape shape : shapes) {
                total += shape.area();
            }
            String numbered = shapes.get(0) instanceof Circle ? "round" : shapes.get(0) instanceof Square square ? "side " + square.width : "long";
            collector.emit(new Values(largest.label(), large.isEmpty(), total, numbered, shapes.get(0).toString().length()));
        }
    }

    public static class Generic extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String kind = tuple.getString(0);
            int count = tuple.getInteger(1);
            List<Pair<String, Integer>> pairs = new ArrayList<>();
            for (String word : new String[] {kind, "a" + count, "z"}) {
                pairs.add(Pair.of(word, word.length()));
            }
            Collections.sort(pairs);
            Pair<String, Double> changed = Collections.max(pairs).with(count / 2.0);
            Ring<String> ring = new Ring<>("n", "e", "s", "w");
            StringBuilder turned = new StringBuilder();
            for (int i = 0; i <= count; i++) {
                turned.append(ring.turn());
            }
            for (String direction : ring) {
                turned.append(direction.toUpperCase());
            }
            UnaryOperator<String> twice = text -> text + text;
            int[][] grid = new int[3][4];
            for (int row = 0; row < grid.length; row++) {
                for (int column = 0; column < grid[row].length; column++) {
                    grid[row][column] = row * column - count;
                }
            }
            int[] copy = Arrays.copyOf(grid[2], 5);
            Arrays.sort(copy);
            do {
                count -= 2;
            } while (count > 0);
            collector.emit(new Values(pairs.get(0).getFirst(), pairs.get(2).getSecond(), changed.getSecond(), turned.toString(),
                twice.andThen(String::length).apply(kind), sum(), sum(1, 2, 3), fold(1, (a, b) -> a * b, 2.0, 0.5, 8.0),
                Arrays.toString(copy), count));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("kind", "count"), 3,
            new Values("square", 2), new Values("hall", 1), new Values("cave", 1), new Values("tower", 3));
        TridentTopology topology = new TridentTopology();
        topology.newStream("rooms", spout)
            .each(new Fields("kind", "count"), new Plan(), new Fields("largest", "small", "total", "first", "length"))
            .each(new Fields("kind", "count"), new Generic(), new Fields("least", "size", "half", "turned", "twice", "none", "six", "product",
                "row", "left"))
            .partitionPersist(new Recorder.Factory("rooms"), new Fields("kind", "count", "largest", "small", "total", "first", "length",
                "least", "size", "half", "turned", "twice", "none", "six", "product", "row", "left"), new Recorder.Updater());
        return topology.build();
    }
}
