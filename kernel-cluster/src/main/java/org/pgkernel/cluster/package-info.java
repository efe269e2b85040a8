/** A whole kernel over a data directory. */
package org.pgkernel.cluster;
