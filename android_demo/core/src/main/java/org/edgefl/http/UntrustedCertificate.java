package org.edgefl.http;

import org.edgefl.EdgeFLError;

/** The coordinator's certificate is not one that the owner trusts: nothing was sent. */
public final class UntrustedCertificate extends EdgeFLError {
    /** What was presented, and what to do. */
    public UntrustedCertificate(String problem, String fix, Throwable cause) {
        super(problem, fix, cause);
    }
}
