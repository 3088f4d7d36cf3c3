import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** A namenode and a datanode in one process: FOLDER HOST PORT [KEY=VALUE ...]. FOLDER/ready appears when they serve. */
public class Hdfs {
    public static void main(String[] arguments) throws Exception {
        try {
            NameNode namenode = started(arguments[0], conf(arguments));
            new File(arguments[0], "ready").createNewFile();
            namenode.join();
        } finally {
            System.exit(1);
        }
    }

    static Configuration conf(String[] arguments) {
        String folder = arguments[0];
        String host = arguments[1];
        Configuration conf = new Configuration();
        conf.set("fs.defaultFS", "hdfs://" + host + ":" + arguments[2]);
        conf.set("dfs.namenode.name.dir", "file://" + folder + "/name");
        conf.set("dfs.datanode.data.dir", "file://" + folder + "/data");
        for (String address : new String[] {
            "namenode.http-address", "datanode.http.address", "datanode.ipc.address", "datanode.address"
        }) {
            conf.set("dfs." + address, host + ":0");
        }
        for (int at = 3; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            conf.set(pair[0], pair[1]);
        }
        return conf;
    }

    static NameNode started(String folder, Configuration conf) throws Exception {
        DefaultMetricsSystem.setMiniClusterMode(true); // format() and the start each make a namesystem
        if (!new File(folder, "name/current/VERSION").exists()) {
            NameNode.format(conf);
        }
        NameNode namenode = NameNode.createNameNode(new String[] {}, conf);
        DataNode.createDataNode(new String[] {}, conf);
        while (namenode.isInSafeMode() || namenode.getNamesystem().getNumLiveDataNodes() == 0) {
            Thread.sleep(20);
        }
        return namenode;
    }
}
