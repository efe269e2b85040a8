/** Tools for tests: a real PostgreSQL, byte comparison. */
package org.pgkernel.testkit;
