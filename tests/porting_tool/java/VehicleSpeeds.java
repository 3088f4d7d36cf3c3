// batches: 3
// unordered: printed
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.Consumer;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Debug;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Beans in tuples: the slowest and the fastest of each batch. */
public class VehicleSpeeds {
    static class Vehicle implements Serializable {
        static final String FIELD_NAME = "vehicle";

        private final String name;
        private int maxSpeed;
        private Double efficiency;

        public Vehicle(String name, int maxSpeed) {
            this.name = name;
            this.maxSpeed = maxSpeed;
        }

        public Vehicle(String name, int maxSpeed, double efficiency) {
            this(name, maxSpeed);
            this.efficiency = efficiency;
        }

        public String getName() {
            return name;
        }

        public int getMaxSpeed() {
            return maxSpeed;
        }

        public void setMaxSpeed(int maxSpeed) {
            this.maxSpeed = maxSpeed;
        }

        public Double getEfficiency() {
            return efficiency;
        }

        public boolean isKnown() {
            return efficiency != null;
        }

        public static List<Values> generateVehicles(int count) {
            List<Values> vehicles = new ArrayList<>(count);
            for (int i = count - 1; i >= 0; i--) {
                Vehicle vehicle = i % 3 == 0 ? new Vehicle("car-" + i, 100 + i * 13 % 40) : new Vehicle("bus-" + i, 60 + i * 7 % 30, i / 4.0);
                vehicles.add(new Values(vehicle, new Driver("driver-" + i, i)));
            }
            return vehicles;
        }

        @Override
        public boolean equals(Object o) {
            if (this == o) return true;
            if (!(o instanceof Vehicle)) return false;

            Vehicle vehicle = (Vehicle) o;

            if (maxSpeed != vehicle.maxSpeed) return false;
            return name != null ? name.equals(vehicle.name) : vehicle.name == null;
        }

        @Override
        public int hashCode() {
            int result = name != null ? name.hashCode() : 0;
            result = 31 * result + maxSpeed;
            return result;
        }

        @Override
        public String toString() {
            return "Vehicle{" +
                "name='" + name + '\'' +
                ", maxSpeed=" + maxSpeed +
                ", efficiency=" + efficiency +
                '}';
        }
    }

    static class Driver implements Serializable {
        static final String FIELD_NAME = "driver";
        final String name;
        final int id;

        Driver(String name, int id) {
            this.name = name;
            this.id = id;
        }

        @Override
        public String toString() {
            return String.format("Driver{name='%s', id=%d}", name, id);
        }
    }

    static class SpeedComparator implements Comparator<TridentTuple>, Serializable {
        @Override
        public int compare(TridentTuple tuple1, TridentTuple tuple2) {
            Vehicle vehicle1 = (Vehicle) tuple1.getValueByField(Vehicle.FIELD_NAME);
            Vehicle vehicle2 = (Vehicle) tuple2.getValueByField(Vehicle.FIELD_NAME);
            return Integer.compare(vehicle1.maxSpeed, vehicle2.maxSpeed);
        }
    }

    static class EfficiencyComparator implements Comparator<TridentTuple>, Serializable {
        @Override
        public int compare(TridentTuple tuple1, TridentTuple tuple2) {
            Vehicle vehicle1 = (Vehicle) tuple1.getValueByField(Vehicle.FIELD_NAME);
            Vehicle vehicle2 = (Vehicle) tuple2.getValueByField(Vehicle.FIELD_NAME);
            double first = vehicle1.isKnown() ? vehicle1.getEfficiency() : -1;
            double second = vehicle2.isKnown() ? vehicle2.getEfficiency() : -1;
            return Double.compare(first, second);
        }
    }

    public static class Describe extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Vehicle vehicle = (Vehicle) tuple.get(0);
            Vehicle copy = new Vehicle(vehicle.getName(), 0);
            copy.setMaxSpeed(vehicle.getMaxSpeed());
            collector.emit(new Values(vehicle.toString(), vehicle.hashCode(), vehicle.equals(copy), Objects.equals(vehicle.getEfficiency(),
                copy.getEfficiency()), Objects.requireNonNullElse(vehicle.getEfficiency(), 0.5), vehicle == copy));
        }
    }

    public static StormTopology buildVehiclesTopology() {
        Fields driverField = new Fields(Driver.FIELD_NAME);
        Fields vehicleField = new Fields(Vehicle.FIELD_NAME);
        Fields allFields = new Fields(Vehicle.FIELD_NAME, Driver.FIELD_NAME);

        FixedBatchSpout spout = new FixedBatchSpout(allFields, 4, Vehicle.generateVehicles(10).toArray(new Values[10]));
        spout.setCycle(false);

        TridentTopology topology = new TridentTopology();
        Stream vehiclesStream = topology.newStream("spout1", spout)
            .each(allFields, new Debug("##### vehicles"));

        Stream slowVehiclesStream = vehiclesStream
            .min(new SpeedComparator())
            .each(vehicleField, new Debug("#### slowest vehicle"));
        slowVehiclesStream
            .each(vehicleField, new Describe(), new Fields("text", "hash", "equal", "same", "efficiency", "identical"))
            .partitionPersist(new Recorder.Factory("slowest"), new Fields("text", "hash", "equal", "same", "efficiency", "identical"),
                new Recorder.Updater());
        vehiclesStream
            .max(new SpeedComparator())
            .project(driverField)
            .peek(new Consumer() {
                @Override
                public void accept(TridentTuple input) {
                    System.out.println("fastest driver: " + input + " of " + input.size());
                }
            });
        vehiclesStream
            .max(new EfficiencyComparator())
            .each(vehicleField, new Describe(), new Fields("text", "hash", "equal", "same", "efficiency", "identical"))
            .partitionPersist(new Recorder.Factory("best"), new Fields("text", "hash", "equal", "same", "efficiency", "identical"),
                new Recorder.Updater());
        return topology.build();
    }

    public static void main(String[] args) throws Exception {
        StormTopology topology = buildVehiclesTopology();
        Config conf = new Config();
        conf.setMaxSpoutPending(20);
        conf.setNumWorkers(3);
        StormSubmitter.submitTopologyWithProgressBar("vehicles-topology", conf, topology);
    }
}
