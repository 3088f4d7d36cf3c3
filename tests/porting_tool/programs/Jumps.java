import java.util.*;

public class Jumps {
    static short turns = 32767;
    static byte next(byte b) { b++; return b; }

    public static void main(String[] args) {
        outer:
        for (int i = 0; i < 5; i++) {
            switch (i) {
                case 2: System.out.println("two"); break outer;
                case 1: System.out.println("one"); break;
                default: System.out.println("none");
            }
            System.out.println("behind " + i);
        }
        rows:
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 3; j++) {
                switch (j) {
                    case 1: { if (i == 2) { break rows; } continue rows; }
                    default: { System.out.println(i + "," + j); }
                }
                System.out.println("in");
            }
            System.out.println("never");
        }
        int k = 0;
        words:
        for (String word : Arrays.asList("a", "b", "c")) {
            switch (word) { case "a" -> k++; case "b" -> { k += 5; break words; } default -> k += 100; }
        }
        System.out.println(k);
        byte b = 127; int used = b++; System.out.println(used + " " + b + " " + next((byte) 127) + " " + (--b - 1));
        short s = -32768; s--; turns++; short[] all = {32767}; all[0]++; System.out.println(s + " " + turns + " " + all[0]);
        for (byte q = 125; q > 0; q++) { System.out.println(q); }
        int hash = "a long enough text".hashCode() | 0x7ffffff0;
        for (int i = 0; i < 20; i++) { int old = hash++; System.out.print(old + ":" + hash + " "); }
        Long sum = 1L << 40; sum *= 3; sum++; System.out.println(sum);
    }
}
