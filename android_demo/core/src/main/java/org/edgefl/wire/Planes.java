package org.edgefl.wire;

/** The coding {@code edgefl-planes}: the four bytes of all words apart, so that gzip finds what is alike. */
public final class Planes {
    /** Most bytes that are coded, in either direction. */
    public static final int MOST_BYTES = 4 << 20;

    private Planes() {}

    /** Separate the bytes of a body's words. */
    public static byte[] split(byte[] body) {
        return move(body, true);
    }

    /** Put the bytes of a body's words together again. */
    public static byte[] join(byte[] planes) {
        return move(planes, false);
    }

    /** Return where the head, each plane and the rest of a body begin, and where it ends. */
    static int[] bounds(byte[] body) {
        int head = headLength(body);
        int words = (body.length - head) / 4;
        return new int[] {0, head, head + words, head + 2 * words, head + 3 * words, body.length};
    }

    private static byte[] move(byte[] from, boolean split) {
        int head = headLength(from);
        int words = (from.length - head) / 4;
        byte[] to = from.clone();
        for (int plane = 0; plane < 4; plane++) {
            int apart = head + plane * words;
            for (int word = 0; word < words; word++) {
                int together = head + 4 * word + plane;
                if (split) {
                    to[apart + word] = from[together];
                } else {
                    to[together] = from[apart + word];
                }
            }
        }
        return to;
    }

    /** Eight bytes and the length that they encode, at most everything. */
    private static int headLength(byte[] body) {
        long length = 0;
        for (int i = Math.min(8, body.length) - 1; i >= 0; i--) {
            length = length << 8 | body[i] & 255;
        }
        boolean all = body.length < 8 || length < 0 || length > body.length - 8;
        return all ? body.length : (int) length + 8;
    }
}
