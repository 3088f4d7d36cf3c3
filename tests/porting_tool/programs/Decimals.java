import java.math.BigDecimal;
import java.math.RoundingMode;

public class Decimals {
    public static void main(String[] args) {
        String[] texts = {"0", "0.00", "-0.001", "1.005", "-2.5", "1E+3", "-5", "0.1", "100", "12345678901234567890123456789012345.678"};
        for (String one : texts) {
            BigDecimal a = new BigDecimal(one);
            System.out.println(a.setScale(2, RoundingMode.HALF_UP) + " " + a.setScale(0, RoundingMode.CEILING) + " " + a.negate() + " " + a.abs() + " " + a.stripTrailingZeros() + " " + a.movePointLeft(2) + " " + a.hashCode() + " " + String.format("%.2f %,.1f", a, a));
            for (String two : texts) {
                BigDecimal b = new BigDecimal(two);
                String line = a.add(b) + " " + a.subtract(b) + " " + a.multiply(b) + " " + a.equals(b) + " " + a.multiply(BigDecimal.ZERO).equals(b.multiply(BigDecimal.ZERO));
                if (b.signum() != 0) {
                    line += " " + a.divide(b, 2, RoundingMode.HALF_EVEN) + " " + a.divide(b, RoundingMode.DOWN) + " " + a.remainder(b);
                }
                System.out.println(line);
            }
        }
        System.out.println(new BigDecimal(-0.0) + " " + BigDecimal.valueOf(-0.0) + " " + BigDecimal.ZERO.divide(new BigDecimal("-4")));
    }
}
