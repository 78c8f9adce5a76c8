package org.edgefl.app.screens;

import android.content.res.Resources;
import java.util.Collections;
import java.util.Objects;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.app.R;
import org.edgefl.http.Pairing;

/** What an owner should know of a federation: before joining it, and after. */
final class FederationCards {
    private final Screen screen;
    private final Resources words;

    FederationCards(Screen screen) {
        this.screen = screen;
        this.words = screen.activity.getResources();
    }

    /** Return what to call a federation in a sentence. */
    static String name(JoinedFederation joined) {
        return joined.federation() == null ? joined.url() : joined.federation();
    }

    /** Show who asks for what, and whether this phone is free to join. */
    void showInvitation(Invitation invitation, JoinedFederation joined) {
        Pairing pairing = invitation.pairing();
        set(R.id.invitation_name, title(pairing.federation()));
        set(R.id.invitation_address, pairing.url());
        set(R.id.invitation_sample, SampleWords.sample(words, invitation.sample()));
        set(R.id.invitation_classes, SampleWords.classes(words, invitation.sample()));
        set(R.id.invitation_trust, Recognition.of(words, invitation));
        boolean same = joined != null && joined.url().equals(pairing.url())
            && Objects.equals(joined.federation(), pairing.federation());
        boolean newKey = same && !pairing.pins().isEmpty() && Collections.disjoint(joined.pins(), pairing.pins());
        screen.show(R.id.join, joined == null || newKey);
        set(R.id.join, words.getString(newKey ? R.string.join_new_key : R.string.join));
        screen.show(R.id.invitation_leave, joined != null && !same);
        screen.show(R.id.invitation_member, joined != null);
        if (joined != null) {
            set(R.id.invitation_member, newKey ? words.getString(R.string.member_new_key)
                : same ? words.getString(R.string.member_already)
                : words.getString(R.string.member_of_other, name(joined)));
        }
    }

    /** Show the federation that this phone is in. */
    void showJoined(JoinedFederation joined) {
        set(R.id.joined_name, title(joined.federation()));
        set(R.id.joined_address, joined.url());
        set(R.id.joined_device, joined.deviceId());
        set(R.id.joined_sample, SampleWords.sample(words, joined.sample()));
        set(R.id.joined_classes, SampleWords.classes(words, joined.sample()));
        set(R.id.joined_trust, Recognition.of(words, joined.url(), joined.pins()));
    }

    private String title(String federation) {
        return federation == null ? words.getString(R.string.no_name) : federation;
    }

    private void set(int id, String text) {
        screen.text(id).setText(text);
    }
}
