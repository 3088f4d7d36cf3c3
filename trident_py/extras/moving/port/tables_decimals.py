"""Table of the library: java.math."""

DECIMALS = r"""
[BigDecimal]
.ZERO BigDecimal = decimal_of(0)
.ONE BigDecimal = decimal_of(1)
.TEN BigDecimal = decimal_of(10)
.valueOf(double) BigDecimal = decimal_of_double($0)
.valueOf(float) BigDecimal = decimal_of_double($0)
.valueOf/1 BigDecimal = decimal_of($0)
.valueOf/2 BigDecimal = decimal_of($0).scaleb(-$1)
new/1 BigDecimal = decimal_of($0)
add/1 BigDecimal = decimal_add($this, $0)
subtract/1 BigDecimal = decimal_subtract($this, $0)
multiply/1 BigDecimal = decimal_multiply($this, $0)
divide/1 BigDecimal = decimal_divide($this, $0)
divide/2 BigDecimal = decimal_divide($this, $0, decimal_scale($this), $1)
divide/3 BigDecimal = decimal_divide($this, $0, $1, $2)
remainder/1 BigDecimal = decimal_remainder($this, $0)
pow/1 BigDecimal = decimal_power($this, $0)
negate/0 BigDecimal = decimal_subtract(decimal_scaled(decimal_of(0), decimal_scale($this)), $this)
abs/0 BigDecimal = $this.copy_abs()
setScale/1 BigDecimal = decimal_scaled($this, $0)
setScale/2 BigDecimal = decimal_scaled($this, $0, $1)
scale/0 int = decimal_scale($this)
precision/0 int = len($this.as_tuple().digits)
unscaledValue/0 BigInteger = decimal_unscaled($this)
signum/0 int = decimal_compare($this, decimal_of(0))
compareTo/1 int = decimal_compare($this, $0)
max/1 BigDecimal = $0 if $0 > $this else $this
min/1 BigDecimal = $0 if $0 < $this else $this
movePointRight/1 BigDecimal = decimal_shifted($this, $0)
movePointLeft/1 BigDecimal = decimal_shifted($this, -$0)
stripTrailingZeros/0 BigDecimal = decimal_stripped($this)
toPlainString/0 String = decimal_plain($this)
toString/0 String = str($this)
toBigInteger/0 BigInteger = int($this)
intValue/0 int = to_int(int($this))
longValue/0 long = to_long(int($this))

[RoundingMode]
.UP RoundingMode = "ROUND_UP"
.DOWN RoundingMode = "ROUND_DOWN"
.CEILING RoundingMode = "ROUND_CEILING"
.FLOOR RoundingMode = "ROUND_FLOOR"
.HALF_UP RoundingMode = "ROUND_HALF_UP"
.HALF_DOWN RoundingMode = "ROUND_HALF_DOWN"
.HALF_EVEN RoundingMode = "ROUND_HALF_EVEN"

[BigInteger]
.ZERO BigInteger = 0
.ONE BigInteger = 1
.TWO BigInteger = 2
.TEN BigInteger = 10
.valueOf/1 BigInteger = $0
new/1 BigInteger = integer_of($0)
add/1 BigInteger = ($this + $0)
subtract/1 BigInteger = ($this - $0)
multiply/1 BigInteger = ($this * $0)
divide/1 BigInteger = quotient($this, $0)
remainder/1 BigInteger = remainder($this, $0)
mod/1 BigInteger = modulus($this, $0)
pow/1 BigInteger = ($this ** $0)
gcd/1 BigInteger = math.gcd($this, $0)
negate/0 BigInteger = (-$this)
abs/0 BigInteger = abs($this)
signum/0 int = compare($this, 0)
compareTo/1 int = compare($this, $0)
equals/1 boolean = ($this == $0)
max/1 BigInteger = max($this, $0)
min/1 BigInteger = min($this, $0)
shiftLeft/1 BigInteger = ($this << $0)
shiftRight/1 BigInteger = ($this >> $0)
bitLength/0 int = $this.bit_length()
toString/0 String = str($this)
"""
