package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.os.Parcel;
import android.widget.EditText;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowLog;

/** From an invitation to membership and out again. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class FederationFlowTest {
    private final Hand hand = new Hand();

    @Test
    public void aLinkShowsWhoAsksForWhatAndJoinsOnATap() {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        assertEquals("school-digits", hand.text(R.id.invitation_name));
        assertEquals("https://digits.example.org:8443", hand.text(R.id.invitation_address));
        assertEquals("A grey picture of 28 × 28 pixels.", hand.text(R.id.invitation_sample));
        assertEquals("It belongs to one of 10 classes.", hand.text(R.id.invitation_classes));
        assertTrue(hand.text(R.id.invitation_trust).contains("abcdefgh…LMNOPQ"));
        assertNull("nothing is joined before a tap", hand.phone.joining);
        Bundle looking = new Bundle();
        hand.controller.saveInstanceState(looking);
        assertTrue("a link that is looked at is kept", bytes(looking).contains("s3cret"));

        hand.tap(R.id.join);
        assertTrue(hand.sees(R.id.working_card));
        assertFalse(hand.sees(R.id.join));
        hand.phone.measures();
        assertTrue(hand.sees(R.id.working_card));
        hand.phone.joined();
        hand.settle();
        assertEquals("school-digits", hand.text(R.id.joined_name));
        assertEquals("device-76d8abca", hand.text(R.id.joined_device));
        assertFalse(hand.sees(R.id.link_card));
        assertTrue("the key is in no log", ShadowLog.getLogs().stream().noneMatch(log -> log.msg.contains("s3cret")));
        Bundle state = new Bundle();
        hand.controller.saveInstanceState(state);
        assertFalse("the key is not kept after joining", bytes(state).contains("s3cret"));
    }

    /** Saved state as the system keeps it; texts in it are of two bytes a character. */
    private static String bytes(Bundle state) {
        Parcel parcel = Parcel.obtain();
        parcel.writeBundle(state);
        String kept = new String(parcel.marshall(), StandardCharsets.ISO_8859_1).replace("\0", "");
        parcel.recycle();
        return kept;
    }

    @Test
    public void aPastedLinkOfTheOtherFormJoinsToo() {
        hand.phone.offered = new Invitation(Federations.invitation().pairing(), Federations.rows(),
            Invitation.Trust.AUTHORITY, null);
        hand.open(null);
        EditText link = hand.find(R.id.link);
        link.setText(" " + Federations.PAGE_LINK + "\n");
        hand.tap(R.id.link_open);
        assertEquals(Federations.PAGE_LINK, hand.phone.asked.get(0));
        assertEquals("A row of 4 numbers.", hand.text(R.id.invitation_sample));
        assertTrue(hand.text(R.id.invitation_trust).contains("authority"));
        hand.tap(R.id.join);
        hand.phone.joined();
        hand.settle();
        assertEquals("the key is forgotten", "", link.getText().toString());
    }

    @Test
    public void whatIsNoInvitationIsRefusedWithAFix() {
        hand.open("edgefl://join?url=javascript%3Aalert(1)");
        assertTrue(hand.sees(R.id.problem));
        assertFalse(hand.text(R.id.problem_fix).isEmpty());
        assertTrue(hand.sees(R.id.link_card));
        assertFalse(hand.sees(R.id.invitation_card));

        String endless = "edgefl://join?url=" + "a".repeat(100_000);
        hand.controller.newIntent(new Intent(Intent.ACTION_VIEW, Uri.parse(endless)));
        hand.settle();
        assertEquals(2049, hand.phone.asked.get(1).length());
        assertTrue(hand.sees(R.id.problem));
    }

    @Test
    public void aMemberOfAnotherFederationIsAskedToLeaveFirst() {
        hand.phone.offered = Federations.invitation();
        hand.phone.federation = new JoinedFederation("https://other.example.org", "flowers", "device-1",
            Federations.rows(), List.of());
        hand.open(null);
        hand.controller.newIntent(new Intent(Intent.ACTION_VIEW, Uri.parse(Federations.LINK)));
        hand.settle();
        assertTrue(hand.text(R.id.invitation_member).contains("flowers"));
        assertFalse(hand.sees(R.id.join));
        hand.tap(R.id.invitation_leave);
        assertEquals("asked before leaving", "flowers", hand.phone.federation.federation());
        ShadowAlertDialog.getLatestAlertDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick();
        hand.settle();
        assertNull(hand.phone.federation);
        assertTrue(hand.sees(R.id.join));
    }

    @Test
    public void aMemberTakesANewKeyOfItsCoordinatorOnlyByATap() {
        hand.phone.offered = Federations.invitation();
        JoinedFederation member = Federations.joined(Federations.digits());
        hand.phone.federation = member;
        hand.open(null);
        hand.controller.newIntent(new Intent(Intent.ACTION_VIEW, Uri.parse(Federations.LINK)));
        hand.settle();
        assertFalse("the key is the known one", hand.sees(R.id.join));
        hand.tap(R.id.invitation_close);

        hand.phone.federation = new JoinedFederation(member.url(), member.federation(), member.deviceId(),
            member.sample(), List.of("sha256:" + "A".repeat(43)));
        hand.controller.newIntent(new Intent(Intent.ACTION_VIEW, Uri.parse(Federations.LINK)));
        hand.settle();
        assertTrue(hand.text(R.id.invitation_member).contains("another key"));
        assertEquals("Use the new key", hand.text(R.id.join));
    }

    @Test
    public void aJoinThatFailsSaysWhyAndCanBeTriedAgain() {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        hand.tap(R.id.join);
        hand.phone.measures();
        hand.phone.be(Phase.IDLE, 0, 0, 0, Double.NaN, "the join key has been used up");
        hand.settle();
        assertEquals("The join key has been used up.", hand.text(R.id.problem_text));
        assertTrue(hand.sees(R.id.join));
    }

    @Test
    public void withoutAnEngineTheBrowserIsOffered() {
        hand.phone.engineProblem = "This APK was built without the training engine.";
        hand.open(Federations.LINK);
        assertEquals(hand.phone.engineProblem, hand.text(R.id.engine_problem));
        assertTrue(hand.phone.asked.isEmpty());
        hand.tap(R.id.open_page);
        Intent browser = shadowOf(hand.activity()).getNextStartedActivity();
        assertEquals(Intent.ACTION_VIEW, browser.getAction());
        assertEquals(Federations.PAGE_LINK + "&pin=" + Federations.PIN, browser.getDataString());
    }

    @Test
    public void anEngineFoundMissingLateIsToldAtOnce() {
        hand.phone.holdBack = true;
        hand.open("edgefl://join?not-a-link");
        hand.phone.engineProblem = "This APK was built without the training engine.";
        hand.phone.tell();
        assertEquals(hand.phone.engineProblem, hand.text(R.id.engine_problem));
        hand.phone.holdBack = false;
        hand.settle();
        assertTrue(hand.sees(R.id.problem));
        assertTrue(hand.sees(R.id.open_page));
    }

    @Test
    public void anInvitationOutlivesRotationAndProcessDeath() {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        hand.rotate();
        assertEquals("school-digits", hand.text(R.id.invitation_name));
        assertEquals("a rotation asks nothing again", 1, hand.phone.asked.size());
        hand.surviveProcessDeath();
        assertEquals("school-digits", hand.text(R.id.invitation_name));
        assertEquals(2, hand.phone.asked.size());
        hand.tap(R.id.join);
        hand.rotate();
        hand.phone.measures();
        assertTrue(hand.sees(R.id.working_card));
        hand.phone.joined();
        hand.settle();
        assertTrue(hand.sees(R.id.joined_card));
        hand.surviveProcessDeath();
        assertEquals("the link is not looked at again", 2, hand.phone.asked.size());
        assertTrue(hand.sees(R.id.joined_card));
    }

    @Test
    public void aProcessThatDiedWhileJoiningAsksTheOwnerAgain() {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        hand.tap(R.id.join);
        hand.surviveProcessDeath();
        assertTrue(hand.sees(R.id.join));
    }

    @Test
    public void typedTextOutlivesProcessDeath() {
        hand.open(null);
        EditText link = hand.find(R.id.link);
        link.setText("edgefl://join?url=ht");
        hand.go(Destination.TRAIN);
        hand.surviveProcessDeath();
        assertTrue(hand.sees(R.id.status));
        hand.go(Destination.FEDERATION);
        assertEquals("edgefl://join?url=ht", ((EditText) hand.find(R.id.link)).getText().toString());
    }
}
