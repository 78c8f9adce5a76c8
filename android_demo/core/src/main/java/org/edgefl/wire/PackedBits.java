package org.edgefl.wire;

import java.nio.ByteBuffer;

/** Bits of a tensor: entry i is bit i % 8 of byte i / 8, and the bits after the last are zero. */
public final class PackedBits {
    private PackedBits() {}

    /** Return how many bytes a number of bits takes. */
    public static int bytes(long bits) {
        return (int) ((bits + 7) / 8);
    }

    /** Return bit i. */
    public static boolean get(byte[] packed, int i) {
        return (packed[i >> 3] >> (i & 7) & 1) != 0;
    }

    /** Set bit i. */
    public static void set(byte[] packed, int i) {
        packed[i >> 3] |= (byte) (1 << (i & 7));
    }

    /** Return how many bits are set. */
    public static int count(byte[] packed) {
        int found = 0;
        for (byte next : packed) {
            found += Integer.bitCount(next & 255);
        }
        return found;
    }

    /** Copy packed bits out of a part, and check their length and the bits after the last. */
    public static byte[] checked(ByteBuffer part, long bits, String name) {
        if (part.remaining() != bytes(bits)) {
            throw new InvalidBody("'" + name + "' has " + part.remaining() + " bytes for " + bits + " bits");
        }
        byte[] packed = new byte[part.remaining()];
        part.duplicate().get(packed);
        if (bits % 8 != 0 && (packed[packed.length - 1] & 255) >> (bits % 8) != 0) {
            throw new InvalidBody("'" + name + "' has bits after the last");
        }
        return packed;
    }
}
