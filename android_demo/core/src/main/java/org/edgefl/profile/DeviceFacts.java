package org.edgefl.profile;

/** What a system says about the device. A phone app brings its own. */
public interface DeviceFacts {
    /** A name for people. */
    String deviceName();

    /** The processor, such as {@code aarch64}. */
    String architecture();

    /** The system, such as {@code Android 15}. */
    String system();

    /** Cores that this process may use. */
    int cores();

    /** Memory of the device. */
    long memoryTotalBytes();

    /** Memory that a new process could get. */
    long memoryFreeBytes();

    /** Memory of this process. */
    long processBytes();
}
