package org.edgefl.wire;

/** A stranger's text as it may be shown and kept: one line, nothing that turns or hides other text, not too long. */
public final class OneLine {
    private static final int MOST_CHARACTERS = 500;

    private OneLine() {}

    /** Return a text whose characters can all be shown; what is beyond 500 of them is left out. */
    public static String of(String text) {
        StringBuilder line = new StringBuilder();
        int count = 0;
        for (int at = 0; at < text.length() && count < MOST_CHARACTERS; count++) {
            int code = text.codePointAt(at);
            at += Character.charCount(code);
            line.appendCodePoint(Names.isPrintable(code) ? code : ' ');
            if (count + 1 == MOST_CHARACTERS && at < text.length()) {
                line.append('\u2026');
            }
        }
        return line.toString().trim();
    }
}
