package org.edgefl.apk;

import com.android.apksig.ApkSigner;
import com.android.apksig.ApkVerifier;
import com.android.apksig.KeyConfig;
import com.android.apksig.apk.ApkFormatException;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.List;

/** Aligns and signs an APK, and verifies one. */
final class ApkSignature {
    private ApkSignature() {}

    /** Sign by the schemes 2 and 3, with libraries at pages and other files at words of four bytes. */
    static void sign(Path unsigned, Path apk, SigningKey key, int minSdk) throws IOException {
        try {
            ApkSigner.SignerConfig signer =
                    new ApkSigner.SignerConfig.Builder(key.alias(), new KeyConfig.Jca(key.key()), List.of(key.certificate()))
                            .build();
            new ApkSigner.Builder(List.of(signer))
                    .setInputApk(unsigned.toFile())
                    .setOutputApk(apk.toFile())
                    .setMinSdkVersion(minSdk)
                    .setV1SigningEnabled(false)
                    .setV2SigningEnabled(true)
                    .setV3SigningEnabled(true)
                    .setV4SigningEnabled(false)
                    .setAlignmentPreserved(false)
                    .setLibraryPageAlignmentBytes(ApkAlignment.PAGE)
                    .setCreatedBy("EdgeFL")
                    .build()
                    .sign();
        } catch (ApkFormatException | GeneralSecurityException e) {
            throw new BuildProblem("the APK cannot be signed: " + e.getMessage(), e);
        }
    }

    /** Return what is known of a good APK, a line for each fact; throw if anything is wrong with it. */
    static String verify(Path apk, int minSdk) throws IOException {
        try {
            ApkVerifier.Result result =
                    new ApkVerifier.Builder(apk.toFile()).setMinCheckedPlatformVersion(minSdk).build().verify();
            boolean isGood = result.isVerified()
                    && result.isVerifiedUsingV2Scheme()
                    && result.isVerifiedUsingV3Scheme();
            if (!isGood) {
                throw new BuildProblem(apk + " is not signed as it should be (v2 " + result.isVerifiedUsingV2Scheme()
                        + ", v3 " + result.isVerifiedUsingV3Scheme() + "): " + result.getAllErrors());
            }
            ApkAlignment.check(apk);
            return "signed by the schemes 2 and 3\naligned for pages of 16 KB\nsigner "
                    + result.getSignerCertificates().get(0).getSubjectX500Principal() + "\n";
        } catch (ApkFormatException | GeneralSecurityException e) {
            throw new BuildProblem(apk + " cannot be verified: " + e.getMessage(), e);
        }
    }
}
