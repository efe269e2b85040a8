package org.pgkernel.cli.repro;

import java.nio.file.Path;

/**
 * What every run of one operation starts from.
 *
 * @param baseCopy cold copy of the primary's data directory
 * @param wal the primary's whole {@code pg_wal}
 * @param pauseLsn where the measured work begins
 * @param judge the data directory that PostgreSQL recovered from the same copy and WAL
 */
record Dataset(
        Operation operation,
        boolean toast,
        BaseKind base,
        int tables,
        Path baseCopy,
        Path wal,
        long pauseLsn,
        Path judge) {
    String name() {
        return operation.label() + (toast ? " with TOAST" : " plain");
    }
}
