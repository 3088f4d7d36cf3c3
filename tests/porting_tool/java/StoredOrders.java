// batches: 3
// conf: {"folder": "$FOLDER"}
// asks: sold "tea"
// asks: sold "cup"
// asks: sold "pot"
// asks: paid "tea"
// asks: paid "cup"
// asks: noted "tea"
// asks: noted "cup"
// sql: create table shops (shop integer, CITY varchar(20), rank double)
// sql: insert into shops values (1, 'Ulm', 1.5), (2, 'Köln', 0.25), (3, null, 0)
// sql: create table orders (id bigint, item varchar(20), city varchar(20), price double)
// sql: create table payments (item varchar(20), price double, paid integer)
// sql: create table notes (item varchar(20), note varchar(60))
// unordered: rows
package topologies;

import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalDRPC;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.jdbc.common.Column;
import org.apache.storm.jdbc.common.ConnectionProvider;
import org.apache.storm.jdbc.common.HikariCPConnectionProvider;
import org.apache.storm.jdbc.mapper.JdbcLookupMapper;
import org.apache.storm.jdbc.mapper.JdbcMapper;
import org.apache.storm.jdbc.mapper.SimpleJdbcLookupMapper;
import org.apache.storm.jdbc.mapper.SimpleJdbcMapper;
import org.apache.storm.jdbc.trident.state.JdbcQuery;
import org.apache.storm.jdbc.trident.state.JdbcState;
import org.apache.storm.jdbc.trident.state.JdbcStateFactory;
import org.apache.storm.jdbc.trident.state.JdbcUpdater;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.ITuple;
import org.apache.storm.tuple.Values;

/** Orders that get their shop's city from one table, and become rows of two others; DRPC asks what was stored. */
public class StoredOrders {
    /** One column of its own making. */
    static class NoteMapper implements JdbcMapper {
        private final String mark;

        NoteMapper(String mark) {
            this.mark = mark;
        }

        @Override
        public List<Column> getColumns(ITuple tuple) {
            List<Column> columns = new ArrayList<>();
            columns.add(new Column<>("note", tuple.getStringByField("city") + mark + tuple.getLongByField("id"), Types.VARCHAR));
            columns.add(new Column<>("item", tuple.getStringByField("item"), Types.VARCHAR));
            return columns;
        }
    }

    static ConnectionProvider connect(Config conf) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("jdbcUrl", "jdbc:sqlite:" + conf.get("folder") + "/stored.sqlite");
        return new HikariCPConnectionProvider(settings);
    }

    static StateFactory asking(ConnectionProvider provider, String select, Fields out, Column... by) {
        JdbcLookupMapper mapper = new SimpleJdbcLookupMapper(out, Arrays.asList(by));
        JdbcState.Options options = new JdbcState.Options();
        options.withConnectionProvider(provider).withSelectQuery(select);
        options.withJdbcLookupMapper(mapper);
        return new JdbcStateFactory(options.withQueryTimeoutSecs(20));
    }

    public static StormTopology buildTopology(Config conf, LocalDRPC drpc) {
        ConnectionProvider provider = connect(conf);
        List<Column> columns = Arrays.asList(new Column("id", Types.BIGINT), new Column("price", Types.DOUBLE),
            new Column("item", Types.VARCHAR), new Column("city", Types.VARCHAR));
        JdbcState.Options orders = new JdbcState.Options()
            .withConnectionProvider(connect(conf))
            .withMapper(new SimpleJdbcMapper(columns))
            .withTableName("orders");
        JdbcState.Options payments = new JdbcState.Options()
            .withConnectionProvider(connect(conf))
            .withMapper(new SimpleJdbcMapper("payments", provider))
            .withTableName("payments");
        JdbcState.Options notes = new JdbcState.Options()
            .withConnectionProvider(connect(conf))
            .withMapper(new NoteMapper("#"))
            .withTableName("notes");

        FixedBatchSpout spout = new FixedBatchSpout(new Fields("id", "item", "shop", "price", "paid"), 3,
            new Values(1L, "tea", 1, 2.5, 1), new Values(2L, "cup", 2, 4.0, 0), new Values(3L, "tea", 2, 2.75, 1),
            new Values(4L, "pot", 3, 20.0, null), new Values(5L, "tea", 1, 2.5, 1), new Values(6L, "cup", 1, null, 0),
            new Values(1L, "tea", 1, 2.5, 1), new Values(1099511627776L, "cup", 2, 1.0E7, 1));

        TridentTopology topology = new TridentTopology();
        TridentState shops = topology.newStaticState(asking(connect(conf),
            "select city, rank as Rank from shops where shop = ?", new Fields("city", "item", "rank"), new Column("shop", Types.INTEGER)));
        Stream placed = topology.newStream("orders", spout)
            .stateQuery(shops, new Fields("shop", "item"), new JdbcQuery(), new Fields("city", "again", "rank"));
        placed.partitionPersist(new Recorder.Factory("placed"), new Fields("id", "again", "city", "rank"), new Recorder.Updater());
        placed.partitionPersist(new JdbcStateFactory(orders), new Fields("id", "item", "city", "price"),
            new JdbcUpdater(), new Fields());
        placed.partitionPersist(new JdbcStateFactory(payments), new Fields("paid", "item", "price"), new JdbcUpdater(), new Fields());
        placed.partitionPersist(new JdbcStateFactory(notes), new Fields("id", "item", "city"), new JdbcUpdater(), new Fields());

        Column item = new Column("args", Types.VARCHAR);
        TridentState sold = topology.newStaticState(asking(connect(conf),
            "select count(*) as n, sum(id) as ids, sum(price) as total, coalesce(min(city), '-') as city from orders where item = ?",
            new Fields("n", "ids", "total", "city"), item));
        TridentState paid = topology.newStaticState(asking(connect(conf),
            "select count(paid) as n, sum(paid) as paid, max(price) as most from payments where item = ?", new Fields("n", "paid", "most"), item));
        TridentState noted = topology.newStaticState(asking(connect(conf),
            "select count(*) as n, group_concat(note, '?') as notes from (select note from notes where item = ? order by note)",
            new Fields("n", "notes"), item));
        topology.newDRPCStream("sold", drpc)
            .stateQuery(sold, new Fields("args"), new JdbcQuery(), new Fields("n", "ids", "total", "city"));
        topology.newDRPCStream("paid", drpc)
            .stateQuery(paid, new Fields("args"), new JdbcQuery(), new Fields("n", "paid", "most"));
        topology.newDRPCStream("noted", drpc)
            .stateQuery(noted, new Fields("args"), new JdbcQuery(), new Fields("n", "notes"));
        return topology.build();
    }
}
