package org.edgefl.wire;

import java.util.regex.Pattern;

/** Seeds: numbers from 0 to 2^64 - 1, as decimal strings in JSON and as the 64 bits of a {@code long} here. */
public final class Seeds {
    private static final Pattern FORM = Pattern.compile("0|[1-9][0-9]{0,19}");

    private Seeds() {}

    /** Read a seed. */
    public static long parse(String text) {
        try {
            if (FORM.matcher(text).matches()) {
                return Long.parseUnsignedLong(text);
            }
        } catch (NumberFormatException beyond64Bits) {
            // Twenty digits may be more than 64 bits.
        }
        throw new InvalidBody("a seed must be a number from 0 to 2^64 - 1, without zeros in front");
    }

    /** Write a seed. */
    public static String text(long seed) {
        return Long.toUnsignedString(seed);
    }
}
