package org.edgefl.agent;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.edgefl.EdgeFLError;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Pairing;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Unreachable;
import org.edgefl.http.UntrustedCertificate;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonText;
import org.edgefl.training.Interrupts;
import org.edgefl.values.Enrolled;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.Digests;

/** Becomes a member of a federation, or goes on being one: samples checked, profile measured, token kept. */
final class Enrolment {
    private static final double MEASUREMENT_SECONDS = 600;

    private final AgentHome home;
    private final AgentSettings settings;
    private final Pairing pairing;
    private final Connection connection;
    private final ArtifactCache cache;
    private final Patience patience;
    private final IdleTime idle;
    private final Status status;
    private final OwnSamples samples;
    private final ToldSamples told;
    private final StopSignal stop;
    private Membership member;
    private String token;
    private SampleSpec sample;

    Enrolment(Parts parts, Pairing pairing) {
        this.home = parts.home;
        this.settings = parts.settings;
        this.pairing = pairing;
        this.connection = parts.connection;
        this.cache = parts.cache;
        this.patience = parts.patience;
        this.idle = parts.idle;
        this.stop = parts.stop;
        this.status = parts.status;
        this.samples = parts.samples;
        this.told = parts.told;
    }

    String token() {
        return token;
    }

    /**
     * Join, or come back; once in the life of an agent.
     *
     * @param check sees what a sample of the federation is before anything is enrolled, and may refuse it
     */
    void join(Consumer<SampleSpec> check) throws IOException {
        if (sample != null) {
            check.accept(sample);
            return;
        }
        member = Membership.load(home);
        if (pairing != null && member != null && !member.url().equals(pairing.url()) && member.isEnrolled()) {
            throw new EdgeFLError("this folder belongs to a device of " + member.url(),
                "Leave that federation first, or give another folder (--home).");
        }
        if (member != null && member.isEnrolled() && opened()) {
            comeBack(check);
        } else {
            enrol(check);
        }
    }

    /** Take the token from the vault. One that is lost for good is replaced, if there is a key to join again. */
    private boolean opened() {
        try {
            token = home.vault().open(member.token());
            return true;
        } catch (EdgeFLError lost) {
            if (pairing == null || pairing.key() == null) {
                throw lost;
            }
            status.say(lost.getMessage() + "; joining again");
            return false;
        }
    }

    private void comeBack(Consumer<SampleSpec> check) throws IOException {
        patience.becomeMember();
        if (pairing != null) {
            member = member.withPairing(pairing);
            member.save(home);
        }
        connection.open(member.url(), member.pins());
        refreshPins();
        SampleSpec spec = spec(token);
        check.accept(spec);
        putCapabilities();
        sample = spec;
        status.say("back as " + member.deviceId());
    }

    private void enrol(Consumer<SampleSpec> check) throws IOException {
        if (pairing == null || pairing.key() == null) {
            throw new EdgeFLError("this device has not joined yet", "Give the operator's pairing URI, with its key.");
        }
        Membership earlier = member;
        member = Membership.begin(pairing);
        if (earlier != null && earlier.url().equals(pairing.url())) {
            member = Membership.begin(pairing, earlier.enrolmentId());
        }
        connection.open(member.url(), member.pins());
        member.save(home);
        SampleSpec spec = spec(pairing.key());
        check.accept(spec);
        Map<String, Object> profile = profile(spec);
        String capabilities = JsonText.write(settings.capabilities().toJson());
        Map<String, Object> request = request(profile);
        Enrolled enrolled = enrolled(request);
        token = enrolled.token();
        member = member.enrolled(enrolled.deviceId(), home.vault().seal(token), capabilities);
        member.save(home);
        sample = spec;
        patience.becomeMember();
        status.say("joined as " + member.deviceId());
    }

    /** Enrol. A coordinator from before numbers of samples refuses an enrolment with one, and gets it without. */
    private Enrolled enrolled(Map<String, Object> request) {
        try {
            Enrolled answer = patience.until(client -> client.enrol(pairing.key(), request));
            told.enrolledWith(request.containsKey("samples") ? samples.count() : ToldSamples.NONE);
            return answer;
        } catch (ProblemAnswer older) {
            if (!older.getMessage().contains("'samples'") || request.remove("samples") == null) {
                throw older;
            }
            return enrolled(request);
        }
    }

    private Map<String, Object> request(Map<String, Object> profile) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.enrolment/1");
        fields.put("enrolment_id", member.enrolmentId());
        fields.put("profile", withoutSchema(profile));
        fields.put("software", settings.capabilities().client() + " " + settings.capabilities().version());
        fields.put("name", settings.name());
        fields.put("capabilities", withoutSchema(settings.capabilities().toJson()));
        if (samples.count() != ToldSamples.NONE) {
            fields.put("samples", samples.count());
        }
        return fields;
    }

    private static Map<String, Object> withoutSchema(Map<String, Object> document) {
        Map<String, Object> fields = new LinkedHashMap<>(document);
        fields.remove("schema");
        return fields;
    }

    private Map<String, Object> profile(SampleSpec spec) throws IOException {
        JsonObject known = settings.profile() == null ? home.document("profile.json") : settings.profile();
        if (known != null) {
            return new LinkedHashMap<>(known.toJson());
        }
        JsonObject measurement = patience.until(client -> client.measurement(pairing.key()));
        if (measurement == null) {
            throw new EdgeFLError("the coordinator has nothing to measure with: it is older than this client",
                "Give a profile that `edgefl profile` wrote on an equal device.");
        }
        status.note("measuring this device");
        Set<String> artifacts = artifacts(measurement);
        cache.keep(artifacts);
        for (String digest : artifacts) {
            patience.until(client -> fetch(client, digest));
        }
        Map<String, Object> measured =
            settings.profiler().measure(measurement, cache, spec, home.freeBytes(), this::goOn);
        idle.restart();
        home.put("profile.json", measured);
        return measured;
    }

    private static Set<String> artifacts(JsonObject measurement) {
        Set<String> found = new LinkedHashSet<>();
        for (JsonObject one : measurement.objects("cases")) {
            for (String name : new String[] {"graph", "weights", "submodel"}) {
                found.add(one.text(name));
            }
        }
        if (!found.stream().allMatch(Digests::isDigest)) {
            throw new InvalidJson("the measurement names downloads by what is not a digest");
        }
        return found;
    }

    private void goOn() {
        if (stop.isStopped()) {
            throw new Interrupts.Stopped();
        }
    }

    private Boolean fetch(CoordinatorClient client, String digest) {
        try {
            cache.fetch(client, pairing.key(), ArtifactCache.MEASUREMENT, digest, MEASUREMENT_SECONDS, this::goOn);
            idle.restart();
            return true;
        } catch (IOException error) {
            throw new EdgeFLError("a download cannot be stored: " + error.getMessage(), "Free some disk space.", error);
        }
    }

    /** Ask what a sample is. A member that gets no answer goes on with what it was told last. */
    private SampleSpec spec(String secret) throws IOException {
        JsonObject answer = null;
        if (member.sample() == null) {
            answer = patience.until(client -> client.sample(secret));
        } else {
            try {
                answer = connection.client().sample(secret);
            } catch (Unreachable | UntrustedCertificate later) {
                status.say("no answer about samples yet: " + later.getMessage());
            }
            answer = answer == null ? member.sample() : answer;
        }
        if (answer == null) {
            throw new EdgeFLError("the coordinator cannot say what a sample is: it is older than this client",
                "Ask the operator to update the coordinator.");
        }
        // Read before it is kept: whoever opens this folder later relies on what is in it.
        SampleSpec spec = SampleSpec.of(answer);
        member = member.withSample(answer);
        member.save(home);
        return spec;
    }

    private void putCapabilities() throws IOException {
        String now = JsonText.write(settings.capabilities().toJson());
        if (now.equals(member.capabilities())) {
            return;
        }
        try {
            patience.until(client -> {
                client.putCapabilities(token, settings.capabilities().toJson());
                return true;
            });
        } catch (ProblemAnswer problem) {
            if (problem.status() != 404) {
                throw problem;
            }
        }
        member = member.withCapabilities(now);
        member.save(home);
    }

    /** Replace the pins by those of the coordinator, if it says so over a connection that fits the known ones. */
    void refreshPins() throws IOException {
        if (member.pins().isEmpty()) {
            return;
        }
        List<String> pins = connection.client().refreshedPins(token, member.pins());
        if (!pins.equals(member.pins())) {
            member = member.withPins(pins);
            member.save(home);
            connection.open(member.url(), member.pins());
        }
    }
}
