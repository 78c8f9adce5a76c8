/** What a device can do: measures training steps of the federation's own model and fits their cost (docs/profile.md). */
package org.edgefl.profile;
