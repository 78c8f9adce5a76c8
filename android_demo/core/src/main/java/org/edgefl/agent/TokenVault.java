package org.edgefl.agent;

/** Encrypts the device's token where it lies on the disk. A phone's vault keeps its key in the Android Keystore. */
public interface TokenVault {
    /** Keeps the token as it is: its file is readable by its user alone. */
    TokenVault PLAIN = new TokenVault() {
        @Override
        public String seal(String token) {
            return token;
        }

        @Override
        public String open(String sealed) {
            return sealed;
        }
    };

    /** Return a text that only {@link #open} of this device understands. */
    String seal(String token);

    /**
     * Return the token.
     *
     * @throws org.edgefl.EdgeFLError if it was sealed with a key that is gone
     */
    String open(String sealed);
}
