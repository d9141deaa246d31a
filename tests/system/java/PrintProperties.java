import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.TreeMap;

/** Prints what java.util.Properties reads from each file named in the file that is the only argument. */
public class PrintProperties {
    public static void main(String[] arguments) throws Exception {
        for (String path : Files.readAllLines(Path.of(arguments[0]))) {
            Properties properties = new Properties();
            System.out.println("file " + path);
            try (InputStream stream = new FileInputStream(path)) {
                properties.load(stream);
            } catch (IllegalArgumentException refused) {
                System.out.println("refused");
                continue;
            }
            for (var entry : new TreeMap<>(properties).entrySet()) {
                System.out.println(hex((String) entry.getKey()) + " " + hex((String) entry.getValue()));
            }
        }
    }

    private static String hex(String text) {
        StringBuilder found = new StringBuilder("x");
        for (char unit : text.toCharArray()) {
            found.append(String.format("%04x", (int) unit));
        }
        return found.toString();
    }
}
