package org.edgefl.agent;

import java.nio.file.Path;
import java.util.List;
import org.edgefl.EdgeFLError;
import org.edgefl.values.SampleSpec;

/**
 * The federation that a device has joined, without its secret.
 *
 * @param federation its name, or null if the pairing URI had none
 * @param pins pins of the coordinator's keys; empty means the usual verification
 */
public record JoinedFederation(
        String url, String federation, String deviceId, SampleSpec sample, List<String> pins) {

    /**
     * Read it from a home folder, also while an agent runs there.
     *
     * @return null if the device has not joined, or if an older version kept what this one does not accept
     */
    public static JoinedFederation read(Path home) {
        Membership member = Membership.load(home);
        if (member == null || !member.isEnrolled() || member.sample() == null) {
            return null;
        }
        try {
            return new JoinedFederation(member.url(), member.federation(), member.deviceId(),
                SampleSpec.of(member.sample()), List.of(member.pins().toArray(new String[0])));
        } catch (EdgeFLError invalid) {
            return null;
        }
    }
}
