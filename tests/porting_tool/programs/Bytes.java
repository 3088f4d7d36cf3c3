import java.nio.charset.StandardCharsets;
import java.util.*;

public class Bytes {
    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }

    public static void main(String[] args) {
        byte[] data = bytes("h\u00e9y\u20ac");
        StringBuilder hex = new StringBuilder();
        for (byte b : data) { hex.append(String.format("%02x", b)).append(Integer.toHexString(b & 0xff)); }
        for (int i = 0; i < data.length; i++) { hex.append(String.format("%02X", data[i])); }
        System.out.println(hex);
        int sum = 0, hash = 7;
        long fnv = 0xcbf29ce484222325L;
        for (byte b : data) { sum += b; hash = 31 * hash + b; fnv ^= b; fnv *= 0x100000001b3L; }
        System.out.println(sum + " " + hash + " " + fnv + " " + Arrays.hashCode(data) + Arrays.toString(data));
        for (int value : data) { System.out.print(value + " "); }
        for (var value : data) { System.out.print((value < 0) + " "); }
        for (int c : "ab".toCharArray()) { System.out.print(c + 1 + " "); }
        for (double x : new int[]{1, 2}) { System.out.print(x / 4 + " "); }
        for (short s : new short[]{-3}) { System.out.println(String.format("%04X %d %o", s, s, (byte) -8)); }
        System.out.println(String.format("%#06x|%#8X|%#o|%x", 255, 255, 8, 255L));
    }
}
