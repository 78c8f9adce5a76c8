package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.edgefl.http.Pairing;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which pins a device trusts when it is started again with a pairing URI. */
class MembershipTest {
    private static final String FIRST = "sha256:" + "A".repeat(43);
    private static final String NEXT = "sha256:" + "E".repeat(43);
    private static final String LATER = "sha256:" + "I".repeat(43);

    private static Pairing code(String... pins) {
        return new Pairing("https://10.0.0.5:8443", "edgefl-key-abc", "digits", List.of(pins));
    }

    @Test
    void theSameCodeAtEveryStartKeepsThePinsToldSince() {
        Membership told = Membership.begin(code(FIRST, NEXT)).withPins(List.of(NEXT, LATER));
        assertEquals(List.of(NEXT, LATER), told.withPairing(code(FIRST, NEXT)).pins());
    }

    @Test
    void aNewCodeReplacesThem() {
        Membership told = Membership.begin(code(FIRST, NEXT)).withPins(List.of(NEXT, LATER));
        Membership scanned = told.withPairing(code(LATER));
        assertEquals(List.of(LATER), scanned.pins());
        assertEquals(told.enrolmentId(), scanned.enrolmentId());
        assertEquals(List.of(FIRST), scanned.withPins(List.of(FIRST)).withPairing(code(LATER)).pins());
    }

    @Test
    void anAddressWithoutPinsChangesNothing() {
        Membership member = Membership.begin(code(FIRST));
        assertEquals(member, member.withPairing(code()));
    }

    @Test
    void theCodeIsKeptAsADigestAlone(@TempDir Path folder) throws IOException {
        AgentHome home = new AgentHome(folder);
        Membership member = Membership.begin(code(FIRST));
        member.save(home);
        assertEquals(member, Membership.load(home));
        assertNull(Membership.load(home).token());
        assertEquals(-1, new String(java.nio.file.Files.readAllBytes(folder.resolve("device.json")),
            java.nio.charset.StandardCharsets.UTF_8).indexOf("edgefl-key"));
    }
}
