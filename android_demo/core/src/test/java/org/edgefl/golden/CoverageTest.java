package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** No golden file is left unread, except for those that are named here with a reason. */
class CoverageTest {
    private static final Map<String, String> NOT_READ = Map.of(
        "channel_scores.json", "for the rule channel_pruning, which this client does not have");

    @Test
    void everyGoldenFileIsReadByATest() throws IOException {
        String tests;
        try (Stream<Path> sources = Files.list(Path.of("src/test/java/org/edgefl/golden"))) {
            StringBuilder text = new StringBuilder();
            for (Path source : sources.collect(Collectors.toList())) {
                text.append(source.endsWith("CoverageTest.java") ? "" : Files.readString(source));
            }
            tests = text.toString();
        }
        try (Stream<Path> files = Files.list(GoldenFiles.FOLDER)) {
            List<String> unread = files.map(file -> file.getFileName().toString())
                .filter(name -> name.endsWith(".json") || name.endsWith(".safetensors"))
                .filter(name -> !tests.contains("\"" + name + "\"") && !NOT_READ.containsKey(name)).sorted()
                .collect(Collectors.toList());
            assertEquals(List.of(), unread);
        }
    }
}
