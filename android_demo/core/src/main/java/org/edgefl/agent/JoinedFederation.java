package org.edgefl.agent;

import java.nio.file.Path;
import java.util.List;
import org.edgefl.values.SampleSpec;

/**
 * The federation that a device has joined, without its secret.
 *
 * @param federation its name, or null if the pairing URI had none
 * @param pins pins of the coordinator's keys; empty means the usual verification
 */
public record JoinedFederation(
        String url, String federation, String deviceId, SampleSpec sample, List<String> pins) {

    /** Read it from a home folder, also while an agent runs there; null if the device has not joined. */
    public static JoinedFederation read(Path home) {
        Membership member = Membership.load(home);
        if (member == null || !member.isEnrolled() || member.sample() == null) {
            return null;
        }
        return new JoinedFederation(member.url(), member.federation(), member.deviceId(),
            SampleSpec.of(member.sample()), List.of(member.pins().toArray(new String[0])));
    }
}
