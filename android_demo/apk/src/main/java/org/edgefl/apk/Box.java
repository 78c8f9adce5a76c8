package org.edgefl.apk;

import java.util.List;

/** A frame around lines that nobody should overlook among what a build prints. */
final class Box {
    private Box() {}

    /** Print lines on standard error. */
    static void print(List<String> lines) {
        int width = lines.stream().mapToInt(String::length).max().orElse(0);
        String edge = "+" + "-".repeat(width + 2) + "+";
        StringBuilder text = new StringBuilder(edge).append('\n');
        for (String line : lines) {
            text.append("| ").append(line).append(" ".repeat(width - line.length())).append(" |\n");
        }
        System.err.print(text.append(edge).append('\n'));
    }
}
