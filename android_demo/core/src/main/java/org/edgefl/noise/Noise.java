package org.edgefl.noise;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Counter-based random numbers: number i of a seed is a function of both (docs/wire.md, "The noise").
 *
 * <p>Seeds and words are unsigned 64-bit numbers in a {@code long}.
 */
public final class Noise {
    private static final long STEP = 0x9e3779b97f4a7c15L;

    private Noise() {}

    /** Return 64 random bits: word {@code index} of a seed. */
    public static long bits(long seed, long index) {
        long z = seed + (index + 1) * STEP;
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /** Return a float32 in [0, 1). */
    public static float unit(long seed, long index) {
        return (bits(seed, index) >>> 40) * 0x1p-24f;
    }

    /** Return a float32 in [-bound, bound). */
    public static float symmetric(long seed, long index, float bound) {
        return ((float) (bits(seed, index) >>> 40) - 0x1p23f) * 0x1p-23f * bound;
    }

    /** Return a new seed for a named purpose. Parts are texts, or whole numbers as {@code Long} or {@code Integer}. */
    public static long derive(long seed, Object... parts) {
        long derived = seed;
        for (Object part : parts) {
            derived = bits(derived, part instanceof String text ? word(text) : ((Number) part).longValue());
        }
        return derived;
    }

    private static long word(String text) {
        byte[] hash;
        try {
            hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
        long word = 0;
        for (int i = 7; i >= 0; i--) {
            word = word << 8 | hash[i] & 255;
        }
        return word;
    }
}
