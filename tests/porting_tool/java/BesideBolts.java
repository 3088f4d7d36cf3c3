// batches: 2
// left: 4
package topologies;

import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** A main that submits a topology of Storm's core, and then its own. */
public class BesideBolts {
    static StormTopology newFeeder() {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("feed", new TestWordSpout(true));
        return builder.createTopology();
    }

    public static void main(String[] args) throws Exception {
        Config conf = new Config();
        System.out.println("first the feeder");
        StormSubmitter.submitTopology("feeder", conf, newFeeder());
        System.out.println("then the words");
        TridentTopology topology = new TridentTopology();
        topology.newStream("words", new FixedBatchSpout(new Fields("word"), 2, new Values("a"), new Values("b"), new Values("c")))
            .partitionPersist(new Recorder.Factory("words"), new Fields("word"), new Recorder.Updater());
        StormSubmitter.submitTopology("words", conf, topology.build());
    }
}
