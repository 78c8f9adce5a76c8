package org.edgefl.app.phone;

/** The application object: where screens, services and jobs find this phone's part in a federation. */
public interface PhoneOwner {
    /** The one {@link Phone} of the process. */
    Phone phone();
}
