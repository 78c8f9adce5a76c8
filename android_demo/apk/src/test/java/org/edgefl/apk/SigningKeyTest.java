package org.edgefl.apk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The debug key's file stands for one's own, too. */
final class SigningKeyTest {
    private static final Path DEBUG = Path.of("debug.p12");

    private static SigningKey read(Map<String, String> environment) {
        return SigningKey.read(environment, DEBUG);
    }

    private static String problem(Map<String, String> environment) {
        return assertThrows(BuildProblem.class, () -> read(environment)).getMessage();
    }

    @Test
    void withoutAnythingSetItIsTheDebugKeyAndSaysSo() {
        assertTrue(read(Map.of()).isPublic());
        assertTrue(read(Map.of(SigningKey.KEYSTORE, "")).isPublic());
        assertEquals("RSA", read(Map.of()).key().getAlgorithm()); // its signatures are the same every time
    }

    @Test
    void theEnvironmentNamesAnotherKey() {
        Map<String, String> own = Map.of(SigningKey.KEYSTORE, DEBUG.toString(), SigningKey.PASSWORD, "android");
        assertFalse(SigningKey.read(own, Path.of("nothing")).isPublic());
        assertEquals("debug", read(own).alias());
    }

    @Test
    void whatIsMissingOrWrongIsNamed() {
        String file = DEBUG.toString();
        assertTrue(problem(Map.of(SigningKey.KEYSTORE, file)).contains(SigningKey.PASSWORD));
        assertTrue(problem(Map.of(SigningKey.KEYSTORE, "none.p12", SigningKey.PASSWORD, "x")).contains("none.p12"));
        Map<String, String> otherAlias =
                Map.of(SigningKey.KEYSTORE, file, SigningKey.PASSWORD, "android", SigningKey.ALIAS, "other");
        assertTrue(problem(otherAlias).contains("[debug]"));
    }

    @Test
    void aWrongPasswordIsExplainedAndNotShown() {
        String said = problem(Map.of(SigningKey.KEYSTORE, DEBUG.toString(), SigningKey.PASSWORD, "open sesame"));
        assertTrue(said.contains("debug.p12") && said.contains("password") && !said.contains("sesame"), said);
    }
}
