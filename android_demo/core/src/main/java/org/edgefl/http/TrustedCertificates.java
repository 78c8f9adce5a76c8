package org.edgefl.http;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertPathValidatorException;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.edgefl.EdgeFLError;

/** Whose certificates are trusted: the pinned keys, one file's, or those of the system's authorities. */
public final class TrustedCertificates {
    private final SSLSocketFactory sockets;
    private final boolean pinned;

    private TrustedCertificates(SSLContext context, boolean pinned) {
        this.sockets = new ModernTls(context.getSocketFactory());
        this.pinned = pinned;
    }

    /** Trust keys by their pins, and nothing else; without pins, the system's authorities. */
    public static TrustedCertificates pinned(Collection<String> pins) {
        TrustManager[] managers = pins.isEmpty() ? null : new TrustManager[] {new PinCheck(new ArrayList<>(pins))};
        return new TrustedCertificates(context(managers), !pins.isEmpty());
    }

    /** Trust the certificates in a PEM file; names in certificates are checked. */
    public static TrustedCertificates ofFile(Path pem) {
        try (InputStream in = Files.newInputStream(pem)) {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            int count = 0;
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("trusted-" + count++, certificate);
            }
            TrustManagerFactory factory =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            return new TrustedCertificates(context(factory.getTrustManagers()), false);
        } catch (IOException | GeneralSecurityException error) {
            throw new EdgeFLError("the certificate " + pem + " cannot be read: " + error.getMessage(),
                "Give the coordinator's certificate as a PEM file.", error);
        }
    }

    private static SSLContext context(TrustManager[] managers) {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers, null);
            return context;
        } catch (GeneralSecurityException error) {
            throw new EdgeFLError("TLS is not available here", "Use a system with TLS 1.2 or later.", error);
        }
    }

    SSLSocketFactory sockets() {
        return sockets;
    }

    /** Whether the key alone decides, and names in certificates do not matter. */
    boolean isPinned() {
        return pinned;
    }

    /** Tell a coordinator that is not the known one from a connection that failed; systems differ in their words. */
    EdgeFLError failure(SSLException error) {
        boolean certificate = error instanceof SSLPeerUnverifiedException;
        for (Throwable cause = error; cause != null && !certificate; cause = cause.getCause()) {
            certificate = cause instanceof CertificateException || cause instanceof CertPathValidatorException;
        }
        if (!certificate) {
            return new Unreachable("TLS failed: " + error.getMessage(), 0, error);
        }
        if (pinned) {
            return new UntrustedCertificate("the coordinator's key is not one that this device knows",
                "Somebody may be in between, or the coordinator has a new key: ask the operator for a new code.", error);
        }
        return new UntrustedCertificate("the coordinator's certificate is not trusted: " + error.getMessage(),
            "Join with the operator's pairing URI, which names its key, or pass the certificate.", error);
    }

    /** Refuses every chain whose first certificate has a key that is not pinned; looks at nothing else. */
    private static final class PinCheck extends X509ExtendedTrustManager {
        private final List<String> pins;

        PinCheck(List<String> pins) {
            this.pins = pins;
        }

        private void check(X509Certificate[] chain) throws CertificateException {
            if (chain == null || chain.length == 0 || !pins.contains(Pin.of(chain[0].getPublicKey()))) {
                throw new CertificateException("no pin fits");
            }
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            check(chain);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            throw new CertificateException("this is not a server");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            throw new CertificateException("this is not a server");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            throw new CertificateException("this is not a server");
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
