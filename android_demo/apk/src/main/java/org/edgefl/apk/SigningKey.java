package org.edgefl.apk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * The key that signs the APK: one's own, named by environment variables, or else the public debug key.
 *
 * <p>Variables and not options, because other users of a machine see the command lines of programs.
 */
record SigningKey(String alias, PrivateKey key, X509Certificate certificate, boolean isPublic) {
    static final String KEYSTORE = "EDGEFL_KEYSTORE";
    static final String PASSWORD = "EDGEFL_KEYSTORE_PASSWORD";
    static final String ALIAS = "EDGEFL_KEY_ALIAS";
    static final String KEY_PASSWORD = "EDGEFL_KEY_PASSWORD";

    /** Read the key that the environment names, or the debug key. */
    static SigningKey read(Map<String, String> environment, Path debugKeystore) {
        String keystore = environment.getOrDefault(KEYSTORE, "");
        if (keystore.isEmpty()) {
            return read(debugKeystore, "android", "", "android", true);
        }
        String password = environment.getOrDefault(PASSWORD, "");
        if (password.isEmpty()) {
            throw new BuildProblem(KEYSTORE + " is set, but " + PASSWORD + " is not");
        }
        return read(Path.of(keystore), password, environment.getOrDefault(ALIAS, ""),
                environment.getOrDefault(KEY_PASSWORD, password), false);
    }

    private static SigningKey read(Path file, String password, String alias, String keyPassword, boolean isPublic) {
        if (!Files.isRegularFile(file)) {
            throw new BuildProblem("there is no keystore at " + file);
        }
        try {
            KeyStore keys = KeyStore.getInstance(file.toFile(), password.toCharArray());
            List<String> aliases = Collections.list(keys.aliases());
            String name = alias.isEmpty() && aliases.size() == 1 ? aliases.get(0) : alias;
            if (!aliases.contains(name)) {
                throw new BuildProblem(file + " has the keys " + aliases + "; name one of them with " + ALIAS);
            }
            PrivateKey key = (PrivateKey) keys.getKey(name, keyPassword.toCharArray());
            return new SigningKey(name, key, (X509Certificate) keys.getCertificate(name), isPublic);
        } catch (IOException | GeneralSecurityException e) {
            throw new BuildProblem(file + " cannot be opened: " + e.getMessage(), e);
        }
    }
}
