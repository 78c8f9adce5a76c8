/**
 * What the owner of the phone sees: five screens and the bar that switches between them.
 *
 * <p>{@link org.edgefl.app.screens.MainActivity} hosts them. They know {@link org.edgefl.app.phone.Phone} and the
 * values that it returns, and nothing of services, jobs, keys, files or the network. Framework widgets only.
 */
package org.edgefl.app.screens;
