/** The published failover experiment. */
package org.pgkernel.cli.repro;
