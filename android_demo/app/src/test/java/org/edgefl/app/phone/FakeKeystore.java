package org.edgefl.app.phone;

import android.security.keystore.KeyGenParameterSpec;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStoreException;
import java.security.KeyStoreSpi;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Base64;
import java.util.Collections;
import java.util.Date;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import javax.crypto.KeyGenerator;
import javax.crypto.KeyGeneratorSpi;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/**
 * The Android Keystore, which the tests' platform lacks: the same names and calls, with keys in memory or in a file.
 *
 * <p>Ciphers are the JVM's own, so what is sealed with a key is really encrypted.
 */
public final class FakeKeystore {
    private static final String NAME = "AndroidKeyStore";
    private static final Map<String, Key> KEYS = new HashMap<>();
    private static Path kept;

    private FakeKeystore() {}

    /** Begin with a keystore without keys. */
    public static void install() {
        install(null);
    }

    /** Begin with the keys that are in a file, and keep new ones there: they outlive the process, as on a phone. */
    public static void install(Path file) {
        kept = file;
        KEYS.clear();
        if (file != null && Files.exists(file)) {
            read();
        }
        Security.removeProvider(NAME);
        Security.addProvider(new Keys());
    }

    private static void read() {
        try (Reader in = Files.newBufferedReader(kept)) {
            Properties keys = new Properties();
            keys.load(in);
            keys.forEach((alias, key) -> KEYS.put((String) alias,
                new SecretKeySpec(Base64.getDecoder().decode((String) key), "AES")));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void write() {
        Properties keys = new Properties();
        KEYS.forEach((alias, key) -> keys.setProperty(alias, Base64.getEncoder().encodeToString(key.getEncoded())));
        try (Writer out = Files.newBufferedWriter(kept)) {
            keys.store(out, null);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Lose all keys, as a phone does whose lock was removed, or that was restored from a copy. */
    static void loseKeys() {
        KEYS.clear();
    }

    private static final class Keys extends Provider {
        Keys() {
            super(NAME, "1", "keys in memory, for tests");
            putService(new Made(this, "KeyStore", NAME, Store.class.getName()));
            putService(new Made(this, "KeyGenerator", "AES", Generator.class.getName()));
        }
    }

    private static final class Made extends Provider.Service {
        Made(Provider provider, String type, String algorithm, String name) {
            super(provider, type, algorithm, name, null, null);
        }

        @Override
        public Object newInstance(Object parameter) {
            return getType().equals("KeyStore") ? new Store() : new Generator();
        }
    }

    private static final class Generator extends KeyGeneratorSpi {
        private KeyGenParameterSpec wanted;

        @Override
        protected void engineInit(AlgorithmParameterSpec spec, SecureRandom random) {
            wanted = (KeyGenParameterSpec) spec;
        }

        @Override
        protected void engineInit(SecureRandom random) {
            throw new UnsupportedOperationException();
        }

        @Override
        protected void engineInit(int size, SecureRandom random) {
            throw new UnsupportedOperationException();
        }

        @Override
        protected SecretKey engineGenerateKey() {
            try {
                KeyGenerator real = KeyGenerator.getInstance("AES", "SunJCE");
                real.init(wanted.getKeySize());
                SecretKey key = real.generateKey();
                KEYS.put(wanted.getKeystoreAlias(), key);
                if (kept != null) {
                    write();
                }
                return key;
            } catch (GeneralSecurityException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }

    private static final class Store extends KeyStoreSpi {
        @Override
        public Key engineGetKey(String alias, char[] password) throws NoSuchAlgorithmException {
            return KEYS.get(alias);
        }

        @Override
        public void engineDeleteEntry(String alias) throws KeyStoreException {
            KEYS.remove(alias);
        }

        @Override
        public boolean engineContainsAlias(String alias) {
            return KEYS.containsKey(alias);
        }

        @Override
        public Enumeration<String> engineAliases() {
            return Collections.enumeration(KEYS.keySet());
        }

        @Override
        public int engineSize() {
            return KEYS.size();
        }

        @Override
        public boolean engineIsKeyEntry(String alias) {
            return KEYS.containsKey(alias);
        }

        @Override
        public void engineLoad(InputStream stream, char[] password) {}

        @Override
        public Certificate[] engineGetCertificateChain(String alias) {
            return null;
        }

        @Override
        public Certificate engineGetCertificate(String alias) {
            return null;
        }

        @Override
        public Date engineGetCreationDate(String alias) {
            return null;
        }

        @Override
        public void engineSetKeyEntry(String alias, Key key, char[] password, Certificate[] chain) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void engineSetKeyEntry(String alias, byte[] key, Certificate[] chain) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void engineSetCertificateEntry(String alias, Certificate certificate) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean engineIsCertificateEntry(String alias) {
            return false;
        }

        @Override
        public String engineGetCertificateAlias(Certificate certificate) {
            return null;
        }

        @Override
        public void engineStore(OutputStream stream, char[] password) {
            throw new UnsupportedOperationException();
        }
    }
}
