/** Transaction status, ids, and the redo of Transaction, CLOG, MultiXact, CommitTs, Standby. */
package org.pgkernel.xact;
