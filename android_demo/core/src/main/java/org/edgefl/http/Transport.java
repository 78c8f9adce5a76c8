package org.edgefl.http;

/** Sends requests: the seam between the protocol and the network. */
public interface Transport {
    /**
     * Send a request and return the response, whatever its status.
     *
     * @throws Unreachable if there is no response
     * @throws UntrustedCertificate if the coordinator is not who it should be; nothing was sent then
     */
    Answer send(Request request);

    /** End what is under way, from any thread. Its caller gets {@link Unreachable}. */
    void abort();
}
