package org.edgefl.training;

import java.nio.file.Path;

/** Where the artifacts of a plan are: files whose content has been checked against their digests. */
public interface Downloads {
    /** Return the file of a digest. */
    Path file(String digest);
}
