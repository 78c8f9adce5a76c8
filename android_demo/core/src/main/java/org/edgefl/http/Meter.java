package org.edgefl.http;

/** Counts traffic as it passes, and may end it by an error where the owner's limit is. */
public interface Meter {
    /** Bytes were received. */
    void received(long bytes);

    /** Bytes were sent. */
    void sent(long bytes);
}
