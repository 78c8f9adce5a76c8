package org.edgefl.agent;

import java.util.List;
import org.edgefl.values.SampleSpec;

/**
 * The federation that a device has joined, without its secret.
 *
 * @param federation its name, or null if the pairing URI had none
 * @param pins pins of the coordinator's keys; empty means the usual verification
 */
public record JoinedFederation(
        String url, String federation, String deviceId, SampleSpec sample, List<String> pins) {}
