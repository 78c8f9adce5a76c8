package org.edgefl.http;

/** Counts traffic as it passes, and may end it by an error where the owner's limit is. */
public interface Meter {
    /** Counts nothing. */
    Meter NONE = new Meter() {
        @Override
        public void received(long bytes) {}

        @Override
        public void sent(long bytes) {}
    };

    /** Bytes were received. */
    void received(long bytes);

    /** Bytes were sent. */
    void sent(long bytes);
}
