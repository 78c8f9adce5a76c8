package org.edgefl.app.phone;

import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.KeyProperties;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.spec.GCMParameterSpec;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.TokenVault;

/**
 * Encrypts the token with AES-GCM under a key that never leaves the Android Keystore: a copy of the app's files is worth
 * nothing on another device.
 */
final class KeystoreVault implements TokenVault {
    private static final String KEYSTORE = "AndroidKeyStore";
    private static final String ALIAS = "edgefl-token";
    private static final String CIPHER = "AES/GCM/NoPadding";
    private static final int KEY_BITS = 256;
    private static final int NONCE_BYTES = 12;
    private static final int TAG_BITS = 128;

    @Override
    public String seal(String token) {
        try {
            Key known = key();
            Cipher cipher = Cipher.getInstance(CIPHER);
            // The keystore chooses the nonce, at random: it refuses one from outside.
            cipher.init(Cipher.ENCRYPT_MODE, known == null ? newKey() : known);
            byte[] sealed = cipher.doFinal(token.getBytes(StandardCharsets.UTF_8));
            byte[] all = ByteBuffer.allocate(NONCE_BYTES + sealed.length).put(cipher.getIV()).put(sealed).array();
            return Base64.getEncoder().encodeToString(all);
        } catch (GeneralSecurityException | IOException | RuntimeException error) {
            throw new EdgeFLError("the phone's keystore cannot encrypt the token: " + error.getMessage(),
                "Restart the phone, and join again.", error);
        }
    }

    @Override
    public String open(String sealed) {
        try {
            Key key = key();
            if (key == null) {
                throw new GeneralSecurityException("its key is gone");
            }
            byte[] all = Base64.getDecoder().decode(sealed);
            Cipher cipher = Cipher.getInstance(CIPHER);
            cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, all, 0, NONCE_BYTES));
            byte[] token = cipher.doFinal(Arrays.copyOfRange(all, NONCE_BYTES, all.length));
            return new String(token, StandardCharsets.UTF_8);
        } catch (GeneralSecurityException | IOException | RuntimeException error) {
            throw new EdgeFLError("this phone can no longer read its token: " + error.getMessage(),
                "Join again with a code of the operator.", error);
        }
    }

    /** Forget the key, and with it everything that it sealed. */
    void forget() {
        try {
            store().deleteEntry(ALIAS);
        } catch (GeneralSecurityException | IOException notThere) {
            // What it sealed has been deleted, too.
        }
    }

    private static KeyStore store() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(KEYSTORE);
        store.load(null);
        return store;
    }

    private static Key key() throws GeneralSecurityException, IOException {
        return store().getKey(ALIAS, null);
    }

    private static Key newKey() throws GeneralSecurityException {
        KeyGenerator generator = KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, KEYSTORE);
        generator.init(
            new KeyGenParameterSpec.Builder(ALIAS, KeyProperties.PURPOSE_ENCRYPT | KeyProperties.PURPOSE_DECRYPT)
                .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
                .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
                .setKeySize(KEY_BITS)
                .build());
        return generator.generateKey();
    }
}
