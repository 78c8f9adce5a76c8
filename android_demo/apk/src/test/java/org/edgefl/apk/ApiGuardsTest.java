package org.edgefl.apk;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Small classes are compiled and looked at, with a mark and a platform of their own. */
final class ApiGuardsTest {
    private static final Map<String, String> PLATFORM = Map.of(
            "Since.java", "package a; public @interface Since { int value(); }",
            "Build.java", "package android.os; public class Build {"
                    + " public static class VERSION { public static final int SDK_INT = Integer.parseInt(\"35\"); } }",
            "Later.java", "package a; @Since(31) class Later { static void call() {}"
                    + " static class Nested { static void call() {} } }",
            "Mixed.java", "package a; class Mixed { @Since(29) static void later() {} static void always() {} }");

    @TempDir
    private Path folder;

    private void check(String body) throws IOException {
        Path sources = Files.createDirectories(folder.resolve("sources"));
        List<String> arguments = new ArrayList<>(List.of("-proc:none", "-d", folder.resolve("classes").toString()));
        for (Map.Entry<String, String> source : PLATFORM.entrySet()) {
            arguments.add(Files.writeString(sources.resolve(source.getKey()), source.getValue()).toString());
        }
        String user = "package a; import android.os.Build; class User { " + body + " }";
        arguments.add(Files.writeString(sources.resolve("User.java"), user).toString());
        int status = ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new));
        assertEquals(0, status);
        ApiGuards.check(folder.resolve("classes"), "a.Since");
    }

    private void assertRefused(String body, String use) {
        String message = assertThrows(BuildProblem.class, () -> check(body)).getMessage();
        assertTrue(message.contains("a.User.") && message.contains(use), message);
    }

    @Test
    void markedCodeNeedsAGuard() {
        assertRefused("void go() { Later.call(); }", "uses a.Later.call");
        assertRefused("void go() { Mixed.later(); }", "uses a.Mixed.later");
        assertRefused("void go() { Later.Nested.call(); }", "uses a.Later$Nested.call");
        assertRefused("Runnable go() { return Mixed::later; }", "uses a.Mixed.later");
    }

    @Test
    void aGuardForAnEarlierVersionIsNotEnough() {
        assertRefused("void go() { if (Build.VERSION.SDK_INT >= 30) { Later.call(); } }", "of API 31");
    }

    @Test
    void aNumberAloneIsNotAGuard() {
        assertRefused("int go() { Later.call(); return 31; }", "of API 31");
    }

    @Test
    void guardedAndMarkedMethodsAreFine() {
        assertDoesNotThrow(() -> check("void go() { if (Build.VERSION.SDK_INT >= 31) { Later.call(); } }"));
        assertDoesNotThrow(() -> check("@Since(31) void go() { Later.call(); }"));
        assertDoesNotThrow(() -> check("void go() { Mixed.always(); }"));
    }
}
