import java.text.*;
import java.time.*;
import java.time.format.*;
import java.util.*;

public class Dates {
    static void say(String what, Object value) { System.out.println(what + " " + value); }
    static void read(String pattern, String text) {
        SimpleDateFormat format = new SimpleDateFormat(pattern);
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        try { say("sdf " + pattern + " " + text, format.parse(text).getTime()); } catch (ParseException e) { say("sdf " + pattern + " " + text, "refused"); }
    }
    static void strict(String pattern, String text) {
        SimpleDateFormat format = new SimpleDateFormat(pattern);
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        format.setLenient(false);
        try { say("strict " + pattern + " " + text, format.parse(text).getTime()); } catch (ParseException e) { say("strict " + pattern + " " + text, "refused"); }
    }
    static void local(String pattern, String text) {
        try { say("dtf " + pattern + " " + text, LocalDateTime.parse(text, DateTimeFormatter.ofPattern(pattern))); } catch (DateTimeParseException e) { say("dtf " + pattern + " " + text, "refused"); }
    }
    static void write(String pattern, long millis) {
        SimpleDateFormat format = new SimpleDateFormat(pattern);
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        say("write " + pattern + " " + millis, format.format(new Date(millis)));
    }
    public static void main(String[] args) {
        String[] stamps = {"2024-02-29 12:30:45", "2024-02-30 12:30:45", "2024-13-01 00:00:00", "2024-2-9 1:2:3", "2024-02-29 24:00:00", "2024-02-29 12:30:45 x", "2024-02-29", "x", "", "02024-02-29 12:30:45", "2024-02-29 12:60:45"};
        for (String one : stamps) { read("yyyy-MM-dd HH:mm:ss", one); strict("yyyy-MM-dd HH:mm:ss", one); local("yyyy-MM-dd HH:mm:ss", one); local("uuuu-MM-dd HH:mm:ss", one); }
        String[] millis = {"2024-02-29 12:30:45.5", "2024-02-29 12:30:45.050", "2024-02-29 12:30:45.123", "2024-02-29 12:30:45.123456", "2024-02-29 12:30:45.12"};
        for (String one : millis) { read("yyyy-MM-dd HH:mm:ss.SSS", one); local("yyyy-MM-dd HH:mm:ss.SSS", one); }
        String[] shorts = {"24/02/29", "99/12/31", "50/01/01"};
        for (String one : shorts) { read("yy/MM/dd", one); }
        read("dd/MMM/yyyy:HH:mm:ss Z", "29/Feb/2024:12:30:45 +0200");
        read("dd/MMM/yyyy:HH:mm:ss Z", "29/feb/2024:12:30:45 -0530");
        read("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-02-29T12:30:45+02:00");
        read("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-02-29T12:30:45Z");
        read("yyyyMMddHHmmss", "20240229123045");
        read("yyyyMMdd", "20240229");
        read("hh:mm a", "12:15 AM"); read("hh:mm a", "12:15 PM"); read("hh:mm a", "01:15 pm");
        read("EEE MMM dd HH:mm:ss yyyy", "Thu Feb 29 12:30:45 2024");
        read("yyyy-MM", "2024-02"); read("HH:mm", "10:05");
        read("dd.MM.yyyy", "29.02.2024"); read("d.M.yyyy", "9.2.2024");
        read("yyyy DDD", "2024 060"); read("yyyy DDD", "2023 366"); strict("yyyy DDD", "2023 366"); strict("yyyy DDD", "2024 366");
        read("dd MMM yy", "01 Mar 24"); read("dd MMM yy", "01 Mar 2024"); read("MMddyyHHmm", "0229241230"); read("yyyy-MM-dd HH:mm:ss", "2024-00-00 00:00:00");
        read("yyyy-MM-dd HH:mm:ss", "2024-02-29 99:99:99"); strict("hh:mm a", "12:15 PM");
        local("dd MMM yyyy HH:mm", "01 Mar 2024 12:30"); local("dd MMM yyyy HH:mm", "01 mar 2024 12:30"); local("dd/MM/yyyy hh:mm a", "01/03/2024 01:15 PM"); local("dd/MM/yyyy hh:mm a", "01/03/2024 01:15 pm");
        local("yyMMddHHmm", "2402291230"); local("yy-MM-dd HH:mm", "99-12-31 23:59"); local("d.M.yyyy H:mm", "9.2.2024 7:05"); local("yyyy-MM-dd HH:mm:ss", "2024-02-29 12:30:45\n");
        local("yyyy-MM-dd HH:mm", "2023-02-31 10:00"); local("yyyy-MM-dd HH:mm", "2023-02-32 10:00"); local("yyyy-MM-dd HH:mm", "2023-12-31 24:00"); local("yyyy-MM-dd HH:mm", "2023-12-31 24:01");
        say("list", Arrays.asList(LocalDateTime.of(2024, 2, 29, 12, 30), LocalDate.of(2024, 2, 29)));
        write("yyyy-MM-dd HH:mm:ss.SSS", 1709209845123L); write("yy-M-d H:m:s", -1L); write("EEE, MMM d yyyy hh:mm a", 253402300799999L);
    }
}
