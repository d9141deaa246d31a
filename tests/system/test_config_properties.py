"""Properties files as Java reads them: sixty files, one JVM (``java/PrintProperties.java``, compiled beside it)."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from failover.config.properties import read_properties
from failover.errors import ConfigError
from failover.lab.java import find_java, jvm_flags

BY_HAND: list[str | bytes] = [
    # What people's own mm2.properties hold.
    "clusters = primary, standby\nprimary.bootstrap.servers = p1:9092,p2:9092\nprimary->standby.enabled=true\n",
    "clusters=a,b\r\na.bootstrap.servers=a:1\r\n\r\n# it\r\na->b.enabled = true\r\na->b.topics = x, \\\r\n  y\r\n",
    b"\xef\xbb\xbfclusters = a, b\na.bootstrap.servers = a:1\n",
    b"\xef\xbb\xbf# a comment behind a mark\nclusters = a, b\n",
    'a.sasl.jaas.config = x.ScramLoginModule required \\\n   username="u" \\\n\tpassword="p;\\"=x";\n',
    'a.sasl.jaas.config=x required username="u" password="c:\\\\temp\\new";\n',
    "topics = .*\\.orders, (?!us-west\\\\.).*\ntopics.exclude = mm2.*\\\\.internal\n",
    "tasks.max = 4   # four\nrefresh.topics.interval.seconds=5 ! fast\n",
    "replication.policy.separator = \nreplication.policy.separator=\\ \na.b= \\  c \n",
    "us-west->us-east.enabled: true\nus-west->us-east.topics: foo.*, bar.*\n",
    "ssl.keystore.certificate.chain = -----BEGIN CERTIFICATE----- \\\n AAA \\\n BBB \\\n -----END CERTIFICATE-----\n",
    "name = J\\u00fcrgen\nname2 = J\xfcrgen\nname3=\\ud83d\\ude00\\u20ac\n".encode("latin-1"),
    "gr\xfcn = \xe9\n".encode(),
    "topics=a\ntopics=b\n topics : c\ntopics\n",
    "  indented = 1\n\t\ttabbed=2\n\fformfed=3\n",
    "a=1\rb=2\rc=\\\r  3\r",
    "#only a comment",
    "",
    "\n\n\n",
    "!bang\n#hash\n  !bang\n  #hash\nx=!y\nz=#y\n",
    "\\#a=1\n\\!b=2\na\\:b\\=c\\ d=e\n",
    "=value\n:value2\n = value3\n",
    "lonely\nlonely2   \nlonely3\t\tvalue with  blanks  \n",
    "a==b\na2=:b\na3: =b\na4 = = b\na5 :b\n",
    "a=x\\\ny=z\nb=x\\\\\ny2=z\nc=x\\\\\\\ny3=z\n",
    "a=\\\n\\\n\\\nend\nb=1\n",
    "\\\n# no key\n  \\\n! nor this\nb=2\n",
    "a=1\\",
    "a=1\\\n",
    "a=x\\\n\n b=y\n",
    "a=x\\\n   \\\n  y\n",
    "a=\\t\\n\\r\\f\\b\\q\\\"\\'\\\\\n",
    "a=\\u0041\\u00e9\\uFFFF\n",
    "a=\\u12\n",
    "a=\\u004G\n",
    "\\u0061\\u0062=c\n",
    "a=\\U0041\n",
    "k\\\ney=v\n",
    "k\\\n   ey   =   v\n",
    "a b c\na\\ b\\ c d\n",
    "a=1\n\\",
    "a=1\n\\\n",
    "a=1\n\\\r\n",
    "a=1\n\\\n\n",
]


def generated(seed: int) -> str:
    chance = random.Random(seed)
    pieces = [
        "a",
        "B",
        "9",
        ".",
        "->",
        "=",
        ":",
        " ",
        "  ",
        "\t",
        "\f",
        "\\",
        "\\\\",
        "#",
        "!",
        "é",
        "\x85",
        "\xa0",
        "\\u0041",
    ]
    pieces += [
        "\\ ",
        "\\=",
        "\\:",
        "\\n",
        "x y",
        ",",
        '"',
        "\\\n",
        "\\\r\n",
        "\\\r",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\n#",
        "\n !",
    ]
    return "".join(chance.choices(pieces, k=chance.randint(20, 400)))


def test_sixty_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    files = []
    for number, content in enumerate([*BY_HAND, *(generated(seed) for seed in range(60 - len(BY_HAND)))]):
        files.append(tmp_path / f"{number}.properties")
        files[-1].write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    listed = tmp_path / "files"
    listed.write_text("\n".join(map(str, files)))
    compiled = str(Path(__file__).parent / "java")
    command = [str(find_java().executable), *jvm_flags(heap="64m", quick=True), "-cp", compiled]
    shown = subprocess.run(
        [*command, "PrintProperties", listed], capture_output=True, text=True, check=True, timeout=60
    )
    by_java: dict[str, list[str]] = {}
    for line in shown.stdout.splitlines():
        if line.startswith("file "):
            by_java[line[5:]] = found = []
        else:
            found.append(line)
    assert by_java == {str(path): ours(path) for path in files}
    refused = [path for path, lines in by_java.items() if lines == ["refused"]]
    assert len(refused) == 2, "what Java refuses is an error here as well"


def ours(path: Path) -> list[str]:
    try:
        effective = read_properties(path).effective()
    except ConfigError:
        return ["refused"]
    return [f"{units(key)} {units(effective[key].value)}" for key in sorted(effective, key=units)]


def units(text: str) -> str:
    return "x" + text.encode("utf-16-be", "surrogatepass").hex()
