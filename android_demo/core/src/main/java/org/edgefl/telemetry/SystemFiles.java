package org.edgefl.telemetry;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Files in which Linux shows its state, below {@code /proc} and {@code /sys}. What cannot be read is not there.
 *
 * @param root where they are; a test has its own
 */
record SystemFiles(Path root) {
    /** Return a text without the spaces around it, or null. */
    String text(String name) {
        try {
            return new String(Files.readAllBytes(root.resolve(name)), StandardCharsets.UTF_8).trim();
        } catch (IOException | SecurityException unknown) {
            return null;
        }
    }

    /** Return a whole number, or null. */
    Long whole(String name) {
        try {
            String text = text(name);
            return text == null ? null : Long.valueOf(text);
        } catch (NumberFormatException unknown) {
            return null;
        }
    }

    /** Return the paths of entries of a folder whose names begin with something, in the order of their names. */
    List<String> entries(String folder, String beginning) {
        File[] files = root.resolve(folder).toFile().listFiles();
        List<String> found = new ArrayList<>();
        if (files != null) {
            Arrays.sort(files);
            for (File file : files) {
                if (file.getName().startsWith(beginning)) {
                    found.add(folder + "/" + file.getName());
                }
            }
        }
        return found;
    }
}
