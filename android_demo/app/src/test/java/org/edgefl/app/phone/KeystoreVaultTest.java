package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.edgefl.EdgeFLError;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public final class KeystoreVaultTest {
    private static final String TOKEN = "edgefl-token-0123456789";

    private final KeystoreVault vault = new KeystoreVault();

    @Before
    public void emptyKeystore() {
        FakeKeystore.install();
    }

    @Test
    public void tokenComesBackAfterARestart() {
        String sealed = vault.seal(TOKEN);
        assertEquals(TOKEN, new KeystoreVault().open(sealed));
    }

    @Test
    public void sealedTokenIsNotReadableAndNeverTheSameTwice() {
        String sealed = vault.seal(TOKEN);
        String bytes = new String(Base64.getDecoder().decode(sealed), StandardCharsets.ISO_8859_1);
        assertFalse(bytes.contains("0123456789"));
        assertNotEquals(sealed, vault.seal(TOKEN));
    }

    @Test
    public void lostKeyMeansJoinAgain() {
        String sealed = vault.seal(TOKEN);
        FakeKeystore.loseKeys();
        EdgeFLError error = assertThrows(EdgeFLError.class, () -> vault.open(sealed));
        assertTrue(error.fix().startsWith("Join again"));
    }

    @Test
    public void anotherKeyOrAChangedByteIsNoticed() {
        String sealed = vault.seal(TOKEN);
        byte[] changed = Base64.getDecoder().decode(sealed);
        changed[changed.length - 1] ^= 1;
        assertThrows(EdgeFLError.class, () -> vault.open(Base64.getEncoder().encodeToString(changed)));
        assertThrows(EdgeFLError.class, () -> vault.open("AAAA"));
        assertThrows(EdgeFLError.class, () -> vault.open("not base64"));
        FakeKeystore.loseKeys();
        vault.seal("another");
        assertThrows(EdgeFLError.class, () -> vault.open(sealed));
    }

    @Test
    public void forgottenKeyOpensNothing() {
        String sealed = vault.seal(TOKEN);
        vault.forget();
        assertThrows(EdgeFLError.class, () -> vault.open(sealed));
    }
}
