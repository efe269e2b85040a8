/**
 * Looks at the files of a cluster that was shut down, without any of a kernel's code for heap, maps
 * or transactions, and says what must not be.
 */
package org.pgkernel.testkit.verify;
