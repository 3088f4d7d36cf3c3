import java.util.*;

public class Floats {
    interface Priced { float price(); default String tag() { return "p" + price(); } }
    static class Tea implements Priced { public float price() { return 1.1f; } }

    public static void main(String[] args) {
        float f = 0.1f; Float boxed = 2.3f; float[] many = {0.1f, 16777217};
        System.out.print(f); System.out.print(boxed); System.out.println();
        StringBuilder text = new StringBuilder("="); text.insert(0, f).append(boxed); System.out.println(text);
        System.out.println(Arrays.toString(many) + Objects.toString(f) + String.valueOf(f) + new Tea().tag());
        int k = 16777217; float whole = k; long big = 9007199254740993L; double rounded = 9007199254740992.0;
        System.out.println(whole + " " + (whole == 16777216) + (k == whole) + (big == rounded) + (big > rounded) + (big > 0.5) + (k < 2.5));
        System.out.println(Integer.toHexString('k') + Integer.toBinaryString('a') + Long.toString('b') + Integer.valueOf('c'));
        String s = "ab"; int none = 2 < s.length() ? s.charAt(2) : -1; int last = 1 < s.length() ? s.charAt(1) : -1; System.out.println(none + last);
        try { Short.parseShort("40000"); } catch (NumberFormatException e) { System.out.println(e.getMessage()); }
        try { new ArrayList<>(Arrays.asList(1, 2)).set(-1, 3); } catch (IndexOutOfBoundsException e) { System.out.println("out of bounds"); }
        Integer[] boxes = {1, 2}; int[] ones = {1}, more = {1};
        System.out.println(Arrays.toString(Arrays.copyOf(boxes, 3)) + Arrays.toString(Arrays.copyOf(new int[0], 2)) + Arrays.toString(Arrays.copyOfRange(new char[]{'a', 'b'}, 1, 2)) + ones.equals(more) + "abc".startsWith("c", -1));
    }
}
