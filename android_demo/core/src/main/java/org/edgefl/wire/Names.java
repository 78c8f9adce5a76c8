package org.edgefl.wire;

import java.nio.charset.StandardCharsets;
import java.util.Comparator;

/** Names of tensors: what is allowed, and their order. */
public final class Names {
    /** The order of the UTF-8 bytes, which differs from that of Java's UTF-16 beyond U+FFFF. */
    public static final Comparator<String> UTF8_ORDER = Names::compare;

    private static final int MOST_CHARACTERS = 256;

    private Names() {}

    private static int compare(String left, String right) {
        byte[] a = left.getBytes(StandardCharsets.UTF_8);
        byte[] b = right.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < Math.min(a.length, b.length); i++) {
            if (a[i] != b[i]) {
                return (a[i] & 255) - (b[i] & 255);
            }
        }
        return a.length - b.length;
    }

    /** Return whether a tensor may have this name: 1 to 256 printable characters without '#'. */
    public static boolean isTensorName(String name) {
        int count = name.codePointCount(0, name.length());
        return count >= 1 && count <= MOST_CHARACTERS && name.indexOf('#') < 0
            && name.codePoints().allMatch(Names::isPrintable);
    }

    /** Return whether a character can be shown: none of the Unicode categories C and Z, except the space. */
    public static boolean isPrintable(int code) {
        return switch (Character.getType(code)) {
            case Character.CONTROL, Character.FORMAT, Character.SURROGATE, Character.PRIVATE_USE, Character.UNASSIGNED,
                Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> false;
            case Character.SPACE_SEPARATOR -> code == ' ';
            default -> true;
        };
    }
}
