package org.edgefl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The signatures of Android 26 tell what is there, and not what works. */
class AndroidCallsTest {
    /** Methods that are there, and always throw on a phone. */
    private static final List<String> ALWAYS_THROW = List.of("getFileStore", "getFileStores");

    private static Path classes() throws URISyntaxException {
        return Path.of(EdgeFLError.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private static boolean calls(Path file, String method) {
        try {
            // Names are in a class file as they are, with their length before them.
            String text = Files.readString(file, StandardCharsets.ISO_8859_1);
            return text.contains("\u0001\u0000" + (char) method.length() + method);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static List<Path> callers(String method) throws IOException, URISyntaxException {
        try (Stream<Path> files = Files.walk(classes())) {
            return files.filter(file -> file.toString().endsWith(".class")).filter(file -> calls(file, method)).toList();
        }
    }

    @Test
    void nothingIsCalledThatAlwaysThrowsOnAPhone() throws IOException, URISyntaxException {
        for (String method : ALWAYS_THROW) {
            assertEquals(List.of(), callers(method), method);
        }
        assertTrue(callers("getUsableSpace").size() > 0, "the search finds what is there");
    }
}
