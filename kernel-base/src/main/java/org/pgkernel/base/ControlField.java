package org.pgkernel.base;

import org.agrona.DirectBuffer;

/**
 * The fields of the control file by PostgreSQL's names, for comparing and printing; the typed
 * accessors are in {@link ControlFile}.
 */
record ControlField(String name, int offset, Kind kind) {
    enum Kind {
        U32,
        U64,
        LSN,
        BOOL,
        TIME,
        FULL_XID,
        STATE,
        DOUBLE,
        NONCE
    }

    /** In the order on disk; the CRC, which follows from the others, is left out. */
    static final ControlField[] ALL = {
        new ControlField("system_identifier", ControlFile.SYSTEM_IDENTIFIER, Kind.U64),
        new ControlField("pg_control_version", ControlFile.PG_CONTROL_VERSION_OFFSET, Kind.U32),
        new ControlField("catalog_version_no", ControlFile.CATALOG_VERSION_NO_OFFSET, Kind.U32),
        new ControlField("state", ControlFile.STATE, Kind.STATE),
        new ControlField("time", ControlFile.TIME, Kind.TIME),
        new ControlField("checkPoint", ControlFile.CHECK_POINT, Kind.LSN),
        new ControlField(
                "checkPointCopy.redo",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.REDO,
                Kind.LSN),
        new ControlField(
                "checkPointCopy.ThisTimeLineID",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.THIS_TIMELINE_ID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.PrevTimeLineID",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.PREV_TIMELINE_ID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.fullPageWrites",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.FULL_PAGE_WRITES,
                Kind.BOOL),
        new ControlField(
                "checkPointCopy.nextXid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.NEXT_XID,
                Kind.FULL_XID),
        new ControlField(
                "checkPointCopy.nextOid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.NEXT_OID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.nextMulti",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.NEXT_MULTI,
                Kind.U32),
        new ControlField(
                "checkPointCopy.nextMultiOffset",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.NEXT_MULTI_OFFSET,
                Kind.U32),
        new ControlField(
                "checkPointCopy.oldestXid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_XID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.oldestXidDB",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_XID_DB,
                Kind.U32),
        new ControlField(
                "checkPointCopy.oldestMulti",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_MULTI,
                Kind.U32),
        new ControlField(
                "checkPointCopy.oldestMultiDB",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_MULTI_DB,
                Kind.U32),
        new ControlField(
                "checkPointCopy.time",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.TIME,
                Kind.TIME),
        new ControlField(
                "checkPointCopy.oldestCommitTsXid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_COMMIT_TS_XID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.newestCommitTsXid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.NEWEST_COMMIT_TS_XID,
                Kind.U32),
        new ControlField(
                "checkPointCopy.oldestActiveXid",
                ControlFile.CHECK_POINT_COPY + CheckPointRecord.OLDEST_ACTIVE_XID,
                Kind.U32),
        new ControlField("unloggedLSN", ControlFile.UNLOGGED_LSN, Kind.LSN),
        new ControlField("minRecoveryPoint", ControlFile.MIN_RECOVERY_POINT, Kind.LSN),
        new ControlField("minRecoveryPointTLI", ControlFile.MIN_RECOVERY_POINT_TLI, Kind.U32),
        new ControlField("backupStartPoint", ControlFile.BACKUP_START_POINT, Kind.LSN),
        new ControlField("backupEndPoint", ControlFile.BACKUP_END_POINT, Kind.LSN),
        new ControlField("backupEndRequired", ControlFile.BACKUP_END_REQUIRED, Kind.BOOL),
        new ControlField("wal_level", ControlFile.WAL_LEVEL, Kind.U32),
        new ControlField("wal_log_hints", ControlFile.WAL_LOG_HINTS, Kind.BOOL),
        new ControlField("MaxConnections", ControlFile.MAX_CONNECTIONS, Kind.U32),
        new ControlField("max_worker_processes", ControlFile.MAX_WORKER_PROCESSES, Kind.U32),
        new ControlField("max_wal_senders", ControlFile.MAX_WAL_SENDERS, Kind.U32),
        new ControlField("max_prepared_xacts", ControlFile.MAX_PREPARED_XACTS, Kind.U32),
        new ControlField("max_locks_per_xact", ControlFile.MAX_LOCKS_PER_XACT, Kind.U32),
        new ControlField("track_commit_timestamp", ControlFile.TRACK_COMMIT_TIMESTAMP, Kind.BOOL),
        new ControlField("maxAlign", ControlFile.MAX_ALIGN, Kind.U32),
        new ControlField("floatFormat", ControlFile.FLOAT_FORMAT, Kind.DOUBLE),
        new ControlField("blcksz", ControlFile.BLCKSZ, Kind.U32),
        new ControlField("relseg_size", ControlFile.RELSEG_SIZE, Kind.U32),
        new ControlField("xlog_blcksz", ControlFile.XLOG_BLCKSZ, Kind.U32),
        new ControlField("xlog_seg_size", ControlFile.XLOG_SEG_SIZE, Kind.U32),
        new ControlField("nameDataLen", ControlFile.NAME_DATA_LEN, Kind.U32),
        new ControlField("indexMaxKeys", ControlFile.INDEX_MAX_KEYS, Kind.U32),
        new ControlField("toast_max_chunk_size", ControlFile.TOAST_MAX_CHUNK_SIZE, Kind.U32),
        new ControlField("loblksize", ControlFile.LOBLKSIZE, Kind.U32),
        new ControlField("float8ByVal", ControlFile.FLOAT8_BY_VAL, Kind.BOOL),
        new ControlField("data_checksum_version", ControlFile.DATA_CHECKSUM_VERSION, Kind.U32),
        new ControlField("mock_authentication_nonce", ControlFile.NONCE, Kind.NONCE),
    };

    boolean isTime() {
        return kind == Kind.TIME;
    }

    /** The value as text, in the form that pg_controldata uses where it has one. */
    String text(DirectBuffer image) {
        return switch (kind) {
            case U32 -> Integer.toUnsignedString(image.getInt(offset));
            case U64 -> Long.toUnsignedString(image.getLong(offset));
            case TIME -> Long.toString(image.getLong(offset));
            case LSN -> Lsn.format(image.getLong(offset));
            case BOOL -> Boolean.toString(image.getByte(offset) != 0);
            case FULL_XID -> {
                long xid = image.getLong(offset);
                yield Integer.toUnsignedString(TransactionId.epochOf(xid))
                        + ":"
                        + Integer.toUnsignedString(TransactionId.xidOf(xid));
            }
            case STATE -> {
                DbState state = DbState.of(image.getInt(offset));
                yield state == null ? "unknown state " + image.getInt(offset) : state.text();
            }
            case DOUBLE -> Double.toString(image.getDouble(offset));
            case NONCE -> {
                StringBuilder hex = new StringBuilder(2 * ControlFile.NONCE_LENGTH);
                for (int i = 0; i < ControlFile.NONCE_LENGTH; i++) {
                    hex.append(String.format("%02x", image.getByte(offset + i)));
                }
                yield hex.toString();
            }
        };
    }
}
