/** The {@code pgkernel} command. */
module org.pgkernel.cli {
    requires info.picocli;
    requires java.sql;
    requires org.pgkernel.cluster;
    requires org.pgkernel.testkit;
    requires me.tongfei.progressbar;

    opens org.pgkernel.cli to
            info.picocli;
}
