/**
 * Tools for tests and for the experiment: a real PostgreSQL server, copies of data directories,
 * cutting WAL, and the byte comparison of two clusters. Depends on kernel-base only, so that every
 * other module's tests can use it.
 */
package org.pgkernel.testkit;
