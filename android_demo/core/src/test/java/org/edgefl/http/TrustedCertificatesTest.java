package org.edgefl.http;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.util.List;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.junit.jupiter.api.Test;

/** A coordinator that is not the known one is told from a connection that failed. */
class TrustedCertificatesTest {
    private static final TrustedCertificates PINNED = TrustedCertificates.pinned(List.of("sha256:" + "A".repeat(43)));
    private static final TrustedCertificates USUAL = TrustedCertificates.pinned(List.of());

    private static SSLException caused(Exception cause) {
        SSLHandshakeException error = new SSLHandshakeException(cause.toString());
        error.initCause(cause);
        return error;
    }

    @Test
    void aCertificateIsRecognisedAsTheReasonOnEverySystem() {
        // As Android says it, which names neither "PKIX" nor "certificate".
        SSLException android =
            caused(new CertPathValidatorException("Trust anchor for certification path not found."));
        SSLException deeper = caused(new CertificateException(android.getCause()));
        for (SSLException error : List.of(android, deeper, new SSLPeerUnverifiedException("Hostname not verified"))) {
            assertEquals(UntrustedCertificate.class, USUAL.failure(error).getClass());
            assertEquals(UntrustedCertificate.class, PINNED.failure(error).getClass());
        }
    }

    @Test
    void aConnectionThatBreaksIsOnlyUnreachable() {
        SSLException broken = new SSLException("Read error: I/O error during system call, Connection reset by peer");
        assertEquals(Unreachable.class, USUAL.failure(broken).getClass());
        assertEquals(Unreachable.class, PINNED.failure(broken).getClass());
    }
}
