package org.edgefl.app.screens;

import android.os.Bundle;
import android.view.inputmethod.EditorInfo;
import android.widget.EditText;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.app.phone.PhoneActivity;
import org.edgefl.http.Pairing;

/**
 * Joins a federation, shows it, leaves it.
 *
 * <p>A link has the join key, which is a secret: it is in memory and in the activity's saved state, and nowhere else.
 */
final class FederationScreen extends Screen {
    private static final String LINK = "link";
    private static final String JOINING = "joining";
    /** One more than a link may have: what is longer is refused by the core, and need not be kept whole. */
    private static final int MOST_CHARACTERS = 2049;

    private final Background.Latest asking = background.new Latest(phone::network);
    private final ProblemCard problem = find(R.id.problem);
    private final EditText link = find(R.id.link);
    private final FederationCards cards = new FederationCards(this);
    private String uri;
    private Invitation invitation;
    private boolean joining;
    /** What the phone did when the owner tapped Join: joining begins a moment later. */
    private PhoneActivity atTap;

    FederationScreen(MainActivity activity) {
        super(activity, R.layout.screen_federation);
        onClick(R.id.link_open, this::openTyped);
        onClick(R.id.open_page, this::openPage);
        onClick(R.id.join, this::join);
        onClick(R.id.invitation_close, this::forget);
        onClick(R.id.invitation_leave, this::askToLeave);
        onClick(R.id.leave, this::askToLeave);
        onClick(R.id.joined_data, () -> activity.open(Destination.DATA));
        link.setOnEditorActionListener((view, action, event) -> {
            if (action == EditorInfo.IME_ACTION_GO) {
                openTyped();
            }
            return action == EditorInfo.IME_ACTION_GO;
        });
    }

    /** Look at a link that was opened or typed. */
    void receive(String received) {
        uri = received.substring(0, Math.min(received.length(), MOST_CHARACTERS));
        invitation = null;
        problem.hide();
        if (phone.engineProblem() == null) {
            ask();
        } else if (pairing() == null) {
            uri = null;
        }
        refresh();
    }

    private void openTyped() {
        String typed = link.getText().toString().trim();
        if (typed.isEmpty()) {
            linkMissing();
            return;
        }
        receive(typed);
    }

    private void linkMissing() {
        problem.show(new Problem(
            activity.getString(R.string.link_missing), activity.getString(R.string.link_missing_fix)));
    }

    private void ask() {
        String asked = uri;
        asking.run(() -> phone.invitation(asked), found -> {
            invitation = found;
            refresh();
        }, failed -> {
            uri = null;
            problem.show(failed);
            refresh();
        });
    }

    /** The invitation that is looked at, or null. */
    Invitation invitation() {
        return invitation;
    }

    private void forget() {
        asking.cancel();
        uri = null;
        invitation = null;
        link.setText("");
        problem.hide();
        refresh();
    }

    private void join() {
        problem.hide();
        joining = true;
        atTap = phone.activity();
        phone.join(invitation);
        refresh();
    }

    private void askToLeave() {
        JoinedFederation joined = phone.federation();
        if (joined != null) {
            confirm(R.string.leave_title, activity.getString(R.string.leave_message, FederationCards.name(joined)),
                R.string.leave,
                this::leave);
        }
    }

    private void leave() {
        background.run(() -> {
            phone.leave();
            return true;
        }, left -> refresh(), problem::show);
    }

    /** Return what the link says, or null with the problem on the screen; nothing is asked of the network. */
    private Pairing pairing() {
        try {
            return Pairing.parse(uri, false);
        } catch (EdgeFLError error) {
            problem.show(Problem.of(activity, error));
            return null;
        }
    }

    private void openPage() {
        problem.hide();
        String typed = link.getText().toString().trim();
        if (uri == null && typed.isEmpty()) {
            linkMissing();
            return;
        }
        uri = uri == null ? typed : uri;
        Pairing pairing = pairing();
        if (pairing == null) {
            uri = null;
        } else if (!JoinPage.open(activity, pairing)) {
            problem.show(new Problem(
                activity.getString(R.string.no_browser), activity.getString(R.string.no_browser_fix)));
        }
    }

    @Override
    void refresh() {
        JoinedFederation joined = phone.federation();
        if (joining) {
            followJoin(joined);
        }
        PhoneActivity now = phone.activity();
        boolean measuring = now.phase() == Phase.JOINING || (joining && now == atTap);
        boolean asked = uri != null && invitation == null && phone.engineProblem() == null;
        boolean invited = invitation != null && !measuring;
        showEngine();
        show(R.id.working_card, measuring || asked);
        text(R.id.working_text).setText(measuring ? R.string.joining : R.string.asking);
        text(R.id.working_message).setText(measuring ? activity.getString(R.string.joining_how) : "");
        show(R.id.working_message, measuring);
        show(R.id.invitation_card, invited);
        if (invited) {
            cards.showInvitation(invitation, joined);
        }
        show(R.id.joined_card, joined != null && !invited);
        if (joined != null) {
            cards.showJoined(joined);
        }
        show(R.id.link_card, joined == null && !invited && !measuring && !asked);
    }

    /** The phone is in, and the key is not needed any more; or joining has failed, and the last message says why. */
    private void followJoin(JoinedFederation joined) {
        PhoneActivity now = phone.activity();
        if (joined != null) {
            joining = false;
            forget();
        } else if (!now.isBusy() && now != atTap && !now.message().isEmpty()) {
            joining = false;
            problem.show(new Problem(Problem.sentence(now.message()), activity.getString(R.string.join_again)));
            if (invitation == null && uri != null) {
                ask();
            }
        }
    }

    private void showEngine() {
        String missing = phone.engineProblem();
        show(R.id.engine_card, missing != null);
        show(R.id.link_open, missing == null);
        text(R.id.engine_problem).setText(missing);
        String address = missing == null ? null : address();
        text(R.id.engine_browser).setText(address == null ? activity.getString(R.string.engine_browser)
            : activity.getString(R.string.engine_browser_of, address));
    }

    /** Return the address that the link names, or null. That there is no engine may turn out after a link has come. */
    private String address() {
        try {
            return uri == null ? null : Pairing.parse(uri, false).url();
        } catch (EdgeFLError invalid) {
            return null;
        }
    }

    @Override
    void save(Bundle state) {
        super.save(state);
        state.putString(LINK, uri);
        state.putBoolean(JOINING, joining);
    }

    @Override
    void restore(Bundle state) {
        super.restore(state);
        uri = state.getString(LINK);
        invitation = uri == null ? null : activity.retained();
        // A new process does not go on with joining: the owner decides again.
        joining = state.getBoolean(JOINING)
            && (invitation != null || phone.activity().phase() == Phase.JOINING);
        if (uri != null && invitation == null && !joining && phone.engineProblem() == null) {
            ask();
        }
    }
}
