/** Counter-based random numbers, the same on every platform. */
package org.edgefl.noise;
