package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.security.PublicKey;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import org.edgefl.http.InvalidPairing;
import org.edgefl.http.Pairing;
import org.edgefl.http.Pin;
import org.edgefl.json.JsonObject;
import org.junit.jupiter.api.Test;

/** pairing.json: URIs to read and to refuse, and certificates with their pins. */
class PairingTest {
    private final JsonObject golden = GoldenFiles.json("pairing.json");

    @Test
    void validUrisAreReadAndWritten() {
        for (JsonObject example : golden.objects("accepted")) {
            Pairing pairing = Pairing.parse(example.text("uri"), false);
            String name = example.text("name");
            assertEquals(example.text("url"), pairing.url(), name);
            assertEquals(example.textOrNull("key"), pairing.key(), name);
            assertEquals(example.textOrNull("federation"), pairing.federation(), name);
            assertEquals(example.texts("pins"), pairing.pins(), name);
            assertEquals(example.object("written").text("app"), pairing.toAppUri(), name);
            assertEquals(example.object("written").text("page"), pairing.toPageUri(), name);
            assertFalse(pairing.toString().contains("edgefl-key-"), name);
        }
    }

    @Test
    void plainHttpToAnotherMachineIsTheOwnersChoice() {
        for (JsonObject example : golden.objects("accepted_if_insecure")) {
            assertThrows(InvalidPairing.class, () -> Pairing.parse(example.text("uri"), false), example.text("name"));
            Pairing.parse(example.text("uri"), true);
        }
    }

    @Test
    void whateverElseIsRefused() {
        for (JsonObject example : golden.objects("refused")) {
            for (boolean insecure : new boolean[] {false, true}) {
                InvalidPairing error = assertThrows(
                    InvalidPairing.class, () -> Pairing.parse(example.text("uri"), insecure), example.text("name"));
                assertFalse(error.getMessage().contains("edgefl-key-"), example.text("name"));
            }
        }
    }

    @Test
    void certificatesHaveTheirPins() throws CertificateException {
        for (JsonObject example : golden.objects("certificates")) {
            byte[] der = Base64.getDecoder().decode(example.text("der"));
            PublicKey key = CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(der)).getPublicKey();
            assertArrayEquals(Base64.getDecoder().decode(example.text("spki")), key.getEncoded(), example.text("name"));
            assertEquals(example.text("pin"), Pin.of(key), example.text("name"));
        }
    }
}
