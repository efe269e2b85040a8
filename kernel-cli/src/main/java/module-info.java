/** The {@code pgkernel} command. */
module org.pgkernel.cli {
    requires info.picocli;
    requires java.management;
    requires java.sql;
    requires jdk.management;
    requires org.pgkernel.cluster;
    requires org.pgkernel.testkit;
    requires me.tongfei.progressbar;

    opens org.pgkernel.cli to
            info.picocli;
}
