// batches: 3
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Hands of cards: enums with fields and methods, records, sets of them. */
public class CardHands {
    public enum Suit {
        CLUBS('c', false), DIAMONDS('d', true), HEARTS('h', true), SPADES('s', false);

        private final char letter;
        private final boolean red;

        Suit(char letter, boolean red) {
            this.letter = letter;
            this.red = red;
        }

        public boolean isRed() {
            return red;
        }

        static Suit of(char letter) {
            for (Suit suit : values()) {
                if (suit.letter == letter) {
                    return suit;
                }
            }
            throw new IllegalArgumentException("no suit: " + letter);
        }
    }

    enum Rank {
        HIGH_CARD, PAIR, TWO_PAIRS, THREE, FLUSH {
            @Override
            int points() {
                return 50;
            }
        };

        int points() {
            return ordinal() * 10;
        }
    }

    public record Card(int value, Suit suit) implements Serializable, Comparable<Card> {
        public Card {
            if (value < 1 || value > 13) {
                throw new IllegalArgumentException("no card: " + value);
            }
        }

        static Card parse(String text) {
            int last = text.length() - 1;
            return new Card(Integer.parseInt(text.substring(0, last)), Suit.of(text.charAt(last)));
        }

        String name() {
            return (value == 1 ? "ACE" : String.valueOf(value)) + " of " + suit;
        }

        @Override
        public int compareTo(Card other) {
            int byValue = Integer.compare(value, other.value);
            return byValue != 0 ? byValue : suit.compareTo(other.suit);
        }
    }

    record Hand(String player, List<Card> cards) {
        Hand(String player) {
            this(player, new ArrayList<>());
        }

        Rank rank() {
            Map<Suit, Integer> suits = new EnumMap<>(Suit.class);
            int[] values = new int[14];
            for (Card card : cards) {
                suits.merge(card.suit(), 1, Integer::sum);
                values[card.value()]++;
            }
            if (cards.size() > 2 && suits.size() == 1) {
                return Rank.FLUSH;
            }
            int pairs = 0;
            for (int count : values) {
                if (count >= 3) {
                    return Rank.THREE;
                } else if (count == 2) {
                    pairs++;
                }
            }
            return pairs == 0 ? Rank.HIGH_CARD : pairs == 1 ? Rank.PAIR : Rank.TWO_PAIRS;
        }
    }

    public static class Evaluate extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Hand hand = new Hand(tuple.getString(0));
            try {
                for (String card : tuple.getString(1).split(",")) {
                    hand.cards().add(Card.parse(card.trim()));
                }
            } catch (NumberFormatException e) {
                collector.emit(new Values("?", -1, "not a number", 0, null, false));
                return;
            } catch (IllegalArgumentException e) {
                collector.emit(new Values("?", -1, e.getMessage(), 0, null, false));
                return;
            }
            Rank rank = hand.rank();
            Card best = Collections.max(hand.cards());
            Set<Card> distinct = new HashSet<>(hand.cards());
            List<Card> sorted = new ArrayList<>(hand.cards());
            sorted.sort(Comparator.comparing(Card::suit).thenComparing(Card::value, Comparator.reverseOrder()));
            boolean red = true;
            for (Card card : distinct) {
                red &= card.suit().isRed();
            }
            collector.emit(new Values(rank.name(), rank.points(), best.name(), distinct.size(), sorted.toString(), red));
        }
    }

    public static class Advice extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String name = tuple.getStringByField("rank");
            if ("?".equals(name)) {
                return;
            }
            Rank rank = Rank.valueOf(name);
            String advice;
            switch (rank) {
                case HIGH_CARD:
                    advice = "fold";
                    break;
                case PAIR:
                case TWO_PAIRS:
                    advice = "stay";
                    break;
                default:
                    advice = "raise";
            }
            String next = rank == Rank.FLUSH ? "none" : Rank.values()[rank.ordinal() + 1].toString();
            collector.emit(new Values(advice, next, rank.compareTo(Rank.THREE) >= 0, new Card(1, Suit.HEARTS).equals(Card.parse("1h"))));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("player", "cards"), 2,
            new Values("ann", "1h, 12d, 12c"), new Values("bob", "2s,3s,9s"),
            new Values("cid", "7h,7d,7s"), new Values("dan", "4x"),
            new Values("eve", "one"), new Values("fay", "14h"), new Values("gil", "5c,5d,6c,6d,6d"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("hands", spout)
            .each(new Fields("player", "cards"), new Evaluate(), new Fields("rank", "points", "best", "distinct", "sorted", "red"))
            .partitionPersist(new Recorder.Factory("hands"), new Fields("player", "rank", "points", "best", "distinct", "sorted", "red"),
                new Recorder.Updater());
        topology.newStream("again", spout)
            .each(new Fields("player", "cards"), new Evaluate(), new Fields("rank", "points", "best", "distinct", "sorted", "red"))
            .each(new Fields("rank"), new Advice(), new Fields("advice", "next", "strong", "equal"))
            .partitionPersist(new Recorder.Factory("advice"), new Fields("player", "advice", "next", "strong", "equal"), new Recorder.Updater());
        return topology.build();
    }
}
