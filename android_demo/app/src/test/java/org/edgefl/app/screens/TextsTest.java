package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.Test;

/** Every text that an owner reads is in strings.xml, where it can be translated, and every one of them is used. */
public final class TextsTest {
    private static final Pattern LITERAL_IN_LAYOUT = Pattern.compile(
        "android:(text|hint|contentDescription|title)=\"(?!@string/)[^\"]*\"");
    private static final Pattern LITERAL_IN_CODE = Pattern.compile(
        "(setText|setTitle|setMessage|setHint|setContentDescription|setStateDescription|setPositiveButton)"
            + "\\(\\s*\"[^\"]");
    private static final Pattern NAME = Pattern.compile("<(?:string|plurals) name=\"([a-z_]+)\"");

    private static List<Path> files(String folder, String end) throws IOException {
        try (Stream<Path> found = Files.walk(Paths.get(folder))) {
            List<Path> files = found.filter(path -> path.toString().endsWith(end)).collect(Collectors.toList());
            assertFalse(folder, files.isEmpty());
            return files;
        }
    }

    private static List<String> matches(List<Path> files, Pattern pattern) throws IOException {
        List<String> found = new ArrayList<>();
        for (Path file : files) {
            Matcher matcher = pattern.matcher(Files.readString(file));
            while (matcher.find()) {
                found.add(file.getFileName() + ": " + matcher.group());
            }
        }
        return found;
    }

    @Test
    public void noTextIsInLayoutsOrCode() throws IOException {
        assertEquals(List.of(), matches(files("src/main/res/layout", ".xml"), LITERAL_IN_LAYOUT));
        assertEquals(List.of(), matches(files("src/main/java/org/edgefl/app/screens", ".java"), LITERAL_IN_CODE));
    }

    @Test
    public void everyTextIsUsed() throws IOException {
        StringBuilder users = new StringBuilder(Files.readString(Paths.get("src/main/AndroidManifest.xml")));
        for (Path file : files("src/main/res/layout", ".xml")) {
            users.append(Files.readString(file));
        }
        for (Path file : files("src/main/java/org/edgefl/app", ".java")) {
            users.append(Files.readString(file));
        }
        Matcher names = NAME.matcher(Files.readString(Paths.get("src/main/res/values/strings.xml")));
        List<String> unused = new ArrayList<>();
        while (names.find()) {
            String use = "(R\\.string\\.|R\\.plurals\\.|@string/)" + names.group(1) + "\\b";
            if (!Pattern.compile(use).matcher(users).find()) {
                unused.add(names.group(1));
            }
        }
        assertEquals(List.of(), unused);
    }
}
