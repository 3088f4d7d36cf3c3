// batches: 4
// conf: {"folder": "$FOLDER", "raw": {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}}
// files: ["readings/*.log", "notes/*.txt"]
package topologies;

import java.nio.charset.StandardCharsets;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.hdfs.trident.HdfsState;
import org.apache.storm.hdfs.trident.HdfsStateFactory;
import org.apache.storm.hdfs.trident.HdfsUpdater;
import org.apache.storm.hdfs.trident.format.DefaultFileNameFormat;
import org.apache.storm.hdfs.trident.format.DelimitedRecordFormat;
import org.apache.storm.hdfs.trident.format.FileNameFormat;
import org.apache.storm.hdfs.trident.format.RecordFormat;
import org.apache.storm.hdfs.trident.rotation.FileRotationPolicy;
import org.apache.storm.hdfs.trident.rotation.FileSizeRotationPolicy;
import org.apache.storm.hdfs.trident.rotation.FileSizeRotationPolicy.Units;
import org.apache.storm.hdfs.trident.rotation.NoRotationPolicy;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Readings in delimited records, in small files; and notes in records of a format of one's own. */
public class FiledReadings {
    static class NoteFormat implements RecordFormat {
        @Override
        public byte[] format(TridentTuple tuple) {
            String note = tuple.getStringByField("place") + (tuple.getBooleanByField("calm") ? " rests" : " moves") + ";\n";
            return note.getBytes(StandardCharsets.UTF_8);
        }
    }

    static StateFactory filed(String folder, String extension, RecordFormat format, FileRotationPolicy policy) {
        FileNameFormat names = new DefaultFileNameFormat().withPath(folder).withPrefix("all").withExtension(extension);
        HdfsState.HdfsFileOptions options = new HdfsState.HdfsFileOptions();
        options.withFileNameFormat(names);
        options.withRecordFormat(format).withRotationPolicy(policy);
        return new HdfsStateFactory().withOptions(options.withFsUrl("file:///").withConfigKey("raw"));
    }

    public static StormTopology buildTopology(Config conf) {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("id", "place", "heat", "calm"), 2,
            new Values(1L, "Ulm", 2.5, true), new Values(2, "Köln|Süd", 1.0E7, false), new Values(-3L, "", -0.5, true),
            new Values(4L, "a b", null, false), new Values(5L, "x\ty", 100.0, true), new Values(1L, "Ulm", 2.5, true));
        DelimitedRecordFormat delimited = new DelimitedRecordFormat();
        delimited.withFieldDelimiter("|").withRecordDelimiter(" .\n").withFields(new Fields("heat", "place", "id", "calm"));
        FileRotationPolicy small = new FileSizeRotationPolicy(0.01f, Units.KB);

        TridentTopology topology = new TridentTopology();
        Stream readings = topology.newStream("readings", spout);
        readings.partitionPersist(filed(conf.get("folder") + "/readings", ".log", delimited, small),
            new Fields("id", "place", "heat", "calm"), new HdfsUpdater(), new Fields());
        readings.partitionPersist(filed(conf.get("folder") + "/notes", ".txt", new NoteFormat(), new NoRotationPolicy()),
            new Fields("place", "calm"), new HdfsUpdater(), new Fields());
        return topology.build();
    }
}
