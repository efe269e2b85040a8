/** Commands. */
package org.pgkernel.cli;
