package org.pgkernel.base;

import java.nio.ByteBuffer;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/**
 * The contents of {@code global/pg_control} of PostgreSQL 15: what the cluster is, what state it is
 * in, and where its last checkpoint lies. The file has 8192 bytes, of which the first 292 mean
 * something and the rest are zeros; that part fits one disk sector, which is why it may be
 * overwritten in place.
 *
 * <pre>
 *   0 system_identifier 8
 *   8 pg_control_version 4
 *  12 catalog_version_no 4
 *  16 state 4
 *  24 time 8
 *  32 checkPoint 8
 *  40 checkPointCopy 88  see CheckPointRecord
 * 128 unloggedLSN 8
 * 136 minRecoveryPoint 8
 * 144 minRecoveryPointTLI 4
 * 152 backupStartPoint 8
 * 160 backupEndPoint 8
 * 168 backupEndRequired 1
 * 172 wal_level 4
 * 176 wal_log_hints 1
 * 180 MaxConnections 4
 * 184 max_worker_processes 4
 * 188 max_wal_senders 4
 * 192 max_prepared_xacts 4
 * 196 max_locks_per_xact 4
 * 200 track_commit_timestamp 1
 * 204 maxAlign 4
 * 208 floatFormat 8
 * 216 blcksz 4
 * 220 relseg_size 4
 * 224 xlog_blcksz 4
 * 228 xlog_seg_size 4
 * 232 nameDataLen 4
 * 236 indexMaxKeys 4
 * 240 toast_max_chunk_size 4
 * 244 loblksize 4
 * 248 float8ByVal 1
 * 252 data_checksum_version 4
 * 256 mock_authentication_nonce 32
 * 288 crc 4  of bytes 0..287
 * </pre>
 *
 * A mutable image in memory: setters change it, {@link #write} makes it the file's. Unused bytes
 * are kept as they were read. Not thread-safe; {@link ControlFileStore} puts it under a lock.
 * Numbers are unsigned, LSNs are {@code long}. (PostgreSQL: ControlFileData, pg_control.h;
 * controldata_utils.c.)
 */
public final class ControlFile {
    /** Below the data directory. (PostgreSQL: XLOG_CONTROL_FILE.) */
    public static final String NAME = "global/pg_control";

    public static final int FILE_SIZE = 8192;

    /** The format that PostgreSQL 13 to 16 share. */
    public static final int PG_CONTROL_VERSION = 1300;

    /** What tells 15 from its neighbours. */
    public static final int CATALOG_VERSION_NO = 202209061;

    /** Blocks of a 1 GiB segment. */
    public static final int BLOCKS_PER_SEGMENT = 131072;

    public static final int WAL_LEVEL_MINIMAL = 0;
    public static final int WAL_LEVEL_REPLICA = 1;
    public static final int WAL_LEVEL_LOGICAL = 2;

    static final int SYSTEM_IDENTIFIER = 0;
    static final int PG_CONTROL_VERSION_OFFSET = 8;
    static final int CATALOG_VERSION_NO_OFFSET = 12;
    static final int STATE = 16;
    static final int TIME = 24;
    static final int CHECK_POINT = 32;

    /** Where the copy of the last checkpoint record begins; see {@link CheckPointRecord}. */
    public static final int CHECK_POINT_COPY = 40;

    static final int UNLOGGED_LSN = 128;
    static final int MIN_RECOVERY_POINT = 136;
    static final int MIN_RECOVERY_POINT_TLI = 144;
    static final int BACKUP_START_POINT = 152;
    static final int BACKUP_END_POINT = 160;
    static final int BACKUP_END_REQUIRED = 168;
    static final int WAL_LEVEL = 172;
    static final int WAL_LOG_HINTS = 176;
    static final int MAX_CONNECTIONS = 180;
    static final int MAX_WORKER_PROCESSES = 184;
    static final int MAX_WAL_SENDERS = 188;
    static final int MAX_PREPARED_XACTS = 192;
    static final int MAX_LOCKS_PER_XACT = 196;
    static final int TRACK_COMMIT_TIMESTAMP = 200;
    static final int MAX_ALIGN = 204;
    static final int FLOAT_FORMAT = 208;
    static final int BLCKSZ = 216;
    static final int RELSEG_SIZE = 220;
    static final int XLOG_BLCKSZ = 224;
    static final int XLOG_SEG_SIZE = 228;
    static final int NAME_DATA_LEN = 232;
    static final int INDEX_MAX_KEYS = 236;
    static final int TOAST_MAX_CHUNK_SIZE = 240;
    static final int LOBLKSIZE = 244;
    static final int FLOAT8_BY_VAL = 248;
    static final int DATA_CHECKSUM_VERSION = 252;
    static final int NONCE = 256;
    static final int NONCE_LENGTH = 32;
    static final int CRC = 288;

    /** Bytes that mean something. */
    static final int DATA_SIZE = 292;

    static final double FLOAT_FORMAT_VALUE = 1234567.0;

    private final UnsafeBuffer image = new UnsafeBuffer(ByteBuffer.allocateDirect(FILE_SIZE));
    private final Crc32c crc = new Crc32c();

    /** One field that two control files do not share. */
    public record Difference(String field, String left, String right) {
        @Override
        public String toString() {
            return field + ": " + left + " against " + right;
        }
    }

    /** A control file with PostgreSQL 15's constants and 16 MB WAL segments; all else is zero. */
    public ControlFile() {
        setPgControlVersion(PG_CONTROL_VERSION);
        setCatalogVersionNo(CATALOG_VERSION_NO);
        setMaxAlign(8);
        setFloatFormat(FLOAT_FORMAT_VALUE);
        setBlockSize(Page.SIZE);
        setRelSegSize(BLOCKS_PER_SEGMENT);
        setXlogBlockSize(8192);
        setXlogSegSize(16 << 20);
        setNameDataLen(64);
        setIndexMaxKeys(32);
        setToastMaxChunkSize(1996);
        setLoBlockSize(2048);
        setFloat8ByVal(true);
    }

    /**
     * Reads the control file of a data directory. A bad checksum is read again a few times, 10 ms
     * apart, since a server may be writing; the same bad checksum twice is damage.
     *
     * @throws org.pgkernel.base.error.RefusedException when there is none, or it is of another
     *     version or of other block or segment sizes
     * @throws org.pgkernel.base.error.DamagedDataException when its size, checksum or a field is
     *     wrong
     */
    public static ControlFile read(Disk disk, String dataDir) {
        ControlFile control = new ControlFile();
        ControlFileReader.read(disk, path(dataDir), control.image, control.crc);
        return control;
    }

    /**
     * Takes the control file from bytes already in memory, with the checks of {@link #read}.
     *
     * @param path what errors name
     */
    public static ControlFile decode(DirectBuffer from, int offset, int length, String path) {
        ControlFile control = new ControlFile();
        ControlFileReader.checkSize(length, path);
        control.image.putBytes(0, from, offset, FILE_SIZE);
        ControlFileReader.checkVersion(control.image, path);
        ControlFileReader.checkCrc(control.image, control.crc, path);
        ControlFileReader.checkFields(control.image, path);
        return control;
    }

    public static String path(String dataDir) {
        return dataDir + "/" + NAME;
    }

    /**
     * Overwrites the whole existing file in place, with the time and checksum of now.
     *
     * @param durable true to make it durable before returning
     */
    public void write(Disk disk, String dataDir, boolean durable, InstantSource clock) {
        try (DiskFile file = disk.open(path(dataDir))) {
            write(file, clock);
            if (durable) {
                file.sync();
            }
        }
    }

    /** Writes it as a new file, which must not exist yet, and makes the file durable. */
    public void create(Disk disk, String dataDir, InstantSource clock) {
        try (DiskFile file = disk.create(path(dataDir))) {
            write(file, clock);
            file.sync();
        }
        disk.syncDirectory(dataDir + "/global");
    }

    /** Overwrites an open file in place, not yet durable; allocates nothing. */
    void write(DiskFile file, InstantSource clock) {
        setTime(clock.millis() / 1000);
        seal();
        file.write(image.addressOffset(), FILE_SIZE, 0);
    }

    /**
     * Puts the file's 8192 bytes, checksum included, at {@code offset} of {@code to}; the time
     * stays as set.
     */
    public void encode(MutableDirectBuffer to, int offset) {
        seal();
        to.putBytes(offset, image, 0, FILE_SIZE);
    }

    private void seal() {
        image.setMemory(DATA_SIZE, FILE_SIZE - DATA_SIZE, (byte) 0);
        image.putInt(CRC, ControlFileReader.crcOf(image, crc));
    }

    /** Becomes equal to {@code other}. */
    public void copyFrom(ControlFile other) {
        image.putBytes(0, other.image, 0, FILE_SIZE);
    }

    /**
     * The fields that differ, by PostgreSQL's names ({@code state}, {@code checkPointCopy.nextXid}
     * and so on), in the order on disk.
     *
     * @param ignoringTimes true to leave out {@code time} and {@code checkPointCopy.time}
     */
    public List<Difference> describeDifferences(ControlFile other, boolean ignoringTimes) {
        List<Difference> differences = new ArrayList<>();
        for (ControlField field : ControlField.ALL) {
            String left = field.text(image);
            String right = field.text(other.image);
            if (!left.equals(right) && !(ignoringTimes && field.isTime())) {
                differences.add(new Difference(field.name(), left, right));
            }
        }
        return differences;
    }

    /** All fields, {@code name=value}, one a line. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (ControlField field : ControlField.ALL) {
            text.append(field.name()).append('=').append(field.text(image)).append('\n');
        }
        return text.toString();
    }

    public DbState state() {
        return DbState.of(image.getInt(STATE));
    }

    public void setState(DbState state) {
        image.putInt(STATE, state.ordinal());
    }

    public boolean checksumsEnabled() {
        return dataChecksumVersion() != 0;
    }

    /** Copies the random bytes used in authentication, 32 of them, to {@code to}. */
    public void mockAuthenticationNonce(byte[] to) {
        image.getBytes(NONCE, to, 0, NONCE_LENGTH);
    }

    public void setMockAuthenticationNonce(byte[] nonce) {
        image.putBytes(NONCE, nonce, 0, NONCE_LENGTH);
    }

    /**
     * The image itself; the copy of the checkpoint lies at {@link #CHECK_POINT_COPY}, for {@link
     * CheckPointRecord}'s accessors.
     */
    public MutableDirectBuffer image() {
        return image;
    }

    /** Takes the checkpoint's body from a WAL record or wherever it was built. */
    public void setCheckPointCopy(DirectBuffer from, int offset) {
        image.putBytes(CHECK_POINT_COPY, from, offset, CheckPointRecord.SIZE);
    }

    public long systemIdentifier() {
        return image.getLong(SYSTEM_IDENTIFIER);
    }

    public void setSystemIdentifier(long systemIdentifier) {
        image.putLong(SYSTEM_IDENTIFIER, systemIdentifier);
    }

    public int pgControlVersion() {
        return image.getInt(PG_CONTROL_VERSION_OFFSET);
    }

    public void setPgControlVersion(int pgControlVersion) {
        image.putInt(PG_CONTROL_VERSION_OFFSET, pgControlVersion);
    }

    public int catalogVersionNo() {
        return image.getInt(CATALOG_VERSION_NO_OFFSET);
    }

    public void setCatalogVersionNo(int catalogVersionNo) {
        image.putInt(CATALOG_VERSION_NO_OFFSET, catalogVersionNo);
    }

    /** When the file was last written, seconds since 1970. */
    public long time() {
        return image.getLong(TIME);
    }

    public void setTime(long time) {
        image.putLong(TIME, time);
    }

    /** Where the last checkpoint record lies, an LSN. */
    public long checkPoint() {
        return image.getLong(CHECK_POINT);
    }

    public void setCheckPoint(long checkPoint) {
        image.putLong(CHECK_POINT, checkPoint);
    }

    /** The LSN counter of unlogged relations. */
    public long unloggedLsn() {
        return image.getLong(UNLOGGED_LSN);
    }

    public void setUnloggedLsn(long unloggedLsn) {
        image.putLong(UNLOGGED_LSN, unloggedLsn);
    }

    /** How far archive recovery must go before the cluster is consistent, 0 outside it. */
    public long minRecoveryPoint() {
        return image.getLong(MIN_RECOVERY_POINT);
    }

    public void setMinRecoveryPoint(long minRecoveryPoint) {
        image.putLong(MIN_RECOVERY_POINT, minRecoveryPoint);
    }

    public int minRecoveryPointTli() {
        return image.getInt(MIN_RECOVERY_POINT_TLI);
    }

    public void setMinRecoveryPointTli(int minRecoveryPointTli) {
        image.putInt(MIN_RECOVERY_POINT_TLI, minRecoveryPointTli);
    }

    public long backupStartPoint() {
        return image.getLong(BACKUP_START_POINT);
    }

    public void setBackupStartPoint(long backupStartPoint) {
        image.putLong(BACKUP_START_POINT, backupStartPoint);
    }

    public long backupEndPoint() {
        return image.getLong(BACKUP_END_POINT);
    }

    public void setBackupEndPoint(long backupEndPoint) {
        image.putLong(BACKUP_END_POINT, backupEndPoint);
    }

    public boolean backupEndRequired() {
        return image.getByte(BACKUP_END_REQUIRED) != 0;
    }

    public void setBackupEndRequired(boolean backupEndRequired) {
        image.putByte(BACKUP_END_REQUIRED, (byte) (backupEndRequired ? 1 : 0));
    }

    /** 0 minimal, 1 replica, 2 logical. */
    public int walLevel() {
        return image.getInt(WAL_LEVEL);
    }

    public void setWalLevel(int walLevel) {
        image.putInt(WAL_LEVEL, walLevel);
    }

    public boolean walLogHints() {
        return image.getByte(WAL_LOG_HINTS) != 0;
    }

    public void setWalLogHints(boolean walLogHints) {
        image.putByte(WAL_LOG_HINTS, (byte) (walLogHints ? 1 : 0));
    }

    public int maxConnections() {
        return image.getInt(MAX_CONNECTIONS);
    }

    public void setMaxConnections(int maxConnections) {
        image.putInt(MAX_CONNECTIONS, maxConnections);
    }

    public int maxWorkerProcesses() {
        return image.getInt(MAX_WORKER_PROCESSES);
    }

    public void setMaxWorkerProcesses(int maxWorkerProcesses) {
        image.putInt(MAX_WORKER_PROCESSES, maxWorkerProcesses);
    }

    public int maxWalSenders() {
        return image.getInt(MAX_WAL_SENDERS);
    }

    public void setMaxWalSenders(int maxWalSenders) {
        image.putInt(MAX_WAL_SENDERS, maxWalSenders);
    }

    public int maxPreparedXacts() {
        return image.getInt(MAX_PREPARED_XACTS);
    }

    public void setMaxPreparedXacts(int maxPreparedXacts) {
        image.putInt(MAX_PREPARED_XACTS, maxPreparedXacts);
    }

    public int maxLocksPerXact() {
        return image.getInt(MAX_LOCKS_PER_XACT);
    }

    public void setMaxLocksPerXact(int maxLocksPerXact) {
        image.putInt(MAX_LOCKS_PER_XACT, maxLocksPerXact);
    }

    public boolean trackCommitTimestamp() {
        return image.getByte(TRACK_COMMIT_TIMESTAMP) != 0;
    }

    public void setTrackCommitTimestamp(boolean trackCommitTimestamp) {
        image.putByte(TRACK_COMMIT_TIMESTAMP, (byte) (trackCommitTimestamp ? 1 : 0));
    }

    public int maxAlign() {
        return image.getInt(MAX_ALIGN);
    }

    public void setMaxAlign(int maxAlign) {
        image.putInt(MAX_ALIGN, maxAlign);
    }

    public double floatFormat() {
        return image.getDouble(FLOAT_FORMAT);
    }

    public void setFloatFormat(double floatFormat) {
        image.putDouble(FLOAT_FORMAT, floatFormat);
    }

    /** Bytes of a page. */
    public int blockSize() {
        return image.getInt(BLCKSZ);
    }

    public void setBlockSize(int blockSize) {
        image.putInt(BLCKSZ, blockSize);
    }

    /** Blocks of a relation segment. */
    public int relSegSize() {
        return image.getInt(RELSEG_SIZE);
    }

    public void setRelSegSize(int relSegSize) {
        image.putInt(RELSEG_SIZE, relSegSize);
    }

    public int xlogBlockSize() {
        return image.getInt(XLOG_BLCKSZ);
    }

    public void setXlogBlockSize(int xlogBlockSize) {
        image.putInt(XLOG_BLCKSZ, xlogBlockSize);
    }

    /** Bytes of a WAL segment. */
    public int xlogSegSize() {
        return image.getInt(XLOG_SEG_SIZE);
    }

    public void setXlogSegSize(int xlogSegSize) {
        image.putInt(XLOG_SEG_SIZE, xlogSegSize);
    }

    public int nameDataLen() {
        return image.getInt(NAME_DATA_LEN);
    }

    public void setNameDataLen(int nameDataLen) {
        image.putInt(NAME_DATA_LEN, nameDataLen);
    }

    public int indexMaxKeys() {
        return image.getInt(INDEX_MAX_KEYS);
    }

    public void setIndexMaxKeys(int indexMaxKeys) {
        image.putInt(INDEX_MAX_KEYS, indexMaxKeys);
    }

    public int toastMaxChunkSize() {
        return image.getInt(TOAST_MAX_CHUNK_SIZE);
    }

    public void setToastMaxChunkSize(int toastMaxChunkSize) {
        image.putInt(TOAST_MAX_CHUNK_SIZE, toastMaxChunkSize);
    }

    public int loBlockSize() {
        return image.getInt(LOBLKSIZE);
    }

    public void setLoBlockSize(int loBlockSize) {
        image.putInt(LOBLKSIZE, loBlockSize);
    }

    public boolean float8ByVal() {
        return image.getByte(FLOAT8_BY_VAL) != 0;
    }

    public void setFloat8ByVal(boolean float8ByVal) {
        image.putByte(FLOAT8_BY_VAL, (byte) (float8ByVal ? 1 : 0));
    }

    /** 1 if pages carry checksums, else 0. */
    public int dataChecksumVersion() {
        return image.getInt(DATA_CHECKSUM_VERSION);
    }

    public void setDataChecksumVersion(int dataChecksumVersion) {
        image.putInt(DATA_CHECKSUM_VERSION, dataChecksumVersion);
    }

    // The copy of the last checkpoint, read field by field; set fields through CheckPointRecord and
    // image().

    public long checkPointRedo() {
        return CheckPointRecord.redo(image, CHECK_POINT_COPY);
    }

    public int checkPointThisTimeLineId() {
        return CheckPointRecord.thisTimeLineId(image, CHECK_POINT_COPY);
    }

    public int checkPointPrevTimeLineId() {
        return CheckPointRecord.prevTimeLineId(image, CHECK_POINT_COPY);
    }

    public boolean checkPointFullPageWrites() {
        return CheckPointRecord.fullPageWrites(image, CHECK_POINT_COPY);
    }

    public long checkPointNextXid() {
        return CheckPointRecord.nextXid(image, CHECK_POINT_COPY);
    }

    public int checkPointNextOid() {
        return CheckPointRecord.nextOid(image, CHECK_POINT_COPY);
    }

    public int checkPointNextMulti() {
        return CheckPointRecord.nextMulti(image, CHECK_POINT_COPY);
    }

    public int checkPointNextMultiOffset() {
        return CheckPointRecord.nextMultiOffset(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestXid() {
        return CheckPointRecord.oldestXid(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestXidDb() {
        return CheckPointRecord.oldestXidDb(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestMulti() {
        return CheckPointRecord.oldestMulti(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestMultiDb() {
        return CheckPointRecord.oldestMultiDb(image, CHECK_POINT_COPY);
    }

    public long checkPointTime() {
        return CheckPointRecord.time(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestCommitTsXid() {
        return CheckPointRecord.oldestCommitTsXid(image, CHECK_POINT_COPY);
    }

    public int checkPointNewestCommitTsXid() {
        return CheckPointRecord.newestCommitTsXid(image, CHECK_POINT_COPY);
    }

    public int checkPointOldestActiveXid() {
        return CheckPointRecord.oldestActiveXid(image, CHECK_POINT_COPY);
    }
}
