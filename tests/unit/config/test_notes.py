from __future__ import annotations

import pytest

from tests.unit.config.build import PAIR, load

FIRST_LINE = PAIR.count("\n") + 1


OVERRIDE = "Connect gives such overrides to sink connectors, not to MM2's consumer"


def notes(tmp_path, text: str, *overrides: str) -> list[tuple[str, str]]:
    return [(note.code, note.text) for note in load(tmp_path, PAIR + text, *overrides).notes]


def test_a_clean_file_has_none(tmp_path):
    text = """
        topics = .*
        ssl.truststore.type = PEM
        B.producer.batch.size = 1
        A->B.producer.override.linger.ms = 5
        A->B.my.filter.key = 1
        tasks.max = 4
        offset.storage.replication.factor = 1
        replication.policy.separator = .
        dedicated.mode.enable.internal.rest = true
        failover.state.dir = /s
        failover.cluster.A.bootstrap.servers = a:1
    """
    assert notes(tmp_path, text) == []


@pytest.mark.parametrize(
    ("key", "better"),
    [
        ("producer.batch.size", "B.producer.batch.size"),
        ("consumer.fetch.min.bytes", "A.consumer.fetch.min.bytes"),
        ("admin.retries", "B.admin.retries"),
        ("producer.override.batch.size", "A->B.producer.override.batch.size"),
        ("use.defaults.from", "A->B.use.defaults.from"),
        ("exactly.once.support", "A->B.exactly.once.support"),
        ("offset.flush.interval.ms", "B.offset.flush.interval.ms"),
        ("exactly.once.source.support", "B.exactly.once.source.support"),
    ],
)
def test_a_dropped_key_is_named_with_the_one_that_works(tmp_path, key, better):
    assert notes(tmp_path, f"{key} = 1") == [("dropped", f"MM2 ignores this: {key}; write {better}")]


def test_a_note_says_where(tmp_path):
    (note,) = load(tmp_path, f"{PAIR}producer.acks=1").notes
    assert str(note).startswith(f"{tmp_path}/mm2.properties:{FIRST_LINE}: MM2 ignores this")


def test_flow_keys_that_miss_their_aim(tmp_path):
    text = "A->B.offset.flush.interval.ms=1\nA->B.producer.batch.size=1"
    assert notes(tmp_path, text) == [
        ("dropped", "A->B.offset.flush.interval.ms does not reach MM2's worker; write B.offset.flush.interval.ms"),
        (
            "dropped",
            "A->B.producer.batch.size reaches only the producer of offset syncs; "
            "for the records write B.producer.batch.size",
        ),
    ]


@pytest.mark.parametrize("key", ["topics.blacklist", "A->B.groups.blacklist", "config.properties.blacklist"])
def test_old_names(tmp_path, key):
    better = key.replace("blacklist", "exclude")
    ((code, message),) = notes(tmp_path, f"{key} = x\nfailover.mm2.version = 3.9")
    assert (code, message) == ("deprecated", f"{key} is a deprecated name, gone in MM2 4.0; write {better}")
    ((code, message),) = notes(tmp_path, f"{key} = x")
    assert code == "dropped"
    assert better in message


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("task.max", "MM2 does not know task.max and ignores it; write tasks.max"),
        ("task.shutdown.graceful.timeout.ms", None),  # begins like a worker's key, and is one
        ("topic.blacklist", "MM2 does not know topic.blacklist and ignores it; write topics.exclude"),
        ("sync.topics.configs.enabled", "ignores it; write sync.topic.configs.enabled"),
        ("offset.storage.topics", "write offset.storage.topic"),
        ("A.boostrap.servers", "write A.bootstrap.servers"),
        ("A.sasl.jass.config", "write A.sasl.jaas.config"),
        ("ssl.trustore.location", "write ssl.truststore.location"),
        ("A->B.enable", "write A->B.enabled"),
        ("A->B.emit.heartbeats", "write A->B.emit.heartbeats.enabled"),
        (
            "B.producer.batchsize",
            "a Kafka producer does not know B.producer.batchsize and ignores it; write B.producer.batch.size",
        ),
        ("A->B.consumer.isolation_level", "write A->B.consumer.isolation.level"),
        ("A.replication.factor", "reaches no connector"),
        ("nonsense.zz", "MM2 does not know nonsense.zz and ignores it; take it out"),
        ("topics.regex", "not read topics.regex; failover replicate does where topics is not set; write topics"),
        ("A->B.groups.regex", "write A->B.groups"),
        ("whitelist", "write topics"),
        (
            "failover.runs.topics",
            "this tool does not know failover.runs.topics and ignores it; write failover.runs.topic",
        ),
        ("C.bootstrap.servers", "names a cluster that is not in 'clusters'"),
        ("A->C.enabled", "names a cluster that is not in 'clusters'"),
        ("failover.cluster.C.ssl.protocol", "names a cluster that is not in 'clusters'"),
        ("failover.cluster.A.retries", "is not used: only bootstrap.servers"),
    ],
)
def test_keys_nobody_reads(tmp_path, key, words):
    found = notes(tmp_path, f"{key} = 1")
    assert [words in message for _, message in found if words] == ([True] if words else [])
    assert words or not found


def test_connection_settings_that_mean_nothing_here(tmp_path):
    found = notes(tmp_path, "A.ssl.cipher.suites = X\nfailover.cluster.B.ssl.provider = X")
    assert [code for code, _ in found] == ["not-used", "not-used"]
    assert found[0][1] == "A.ssl.cipher.suites is not used to connect to A: OpenSSL picks the cipher"


def test_a_reference_without_its_provider(tmp_path):
    found = notes(tmp_path, "config.providers=env\nA.sasl.jaas.config=${file:/hunter2:j}\nA.ssl.key.password=${env:X}")
    ((code, message),) = found
    assert code == "no-provider"
    assert "config.providers.file.class" in message
    assert "A.sasl.jaas.config names the configuration provider 'file'" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("prefix", ["A->B.", "A.", ""])
def test_a_consumers_overrides_are_dropped(tmp_path, prefix):
    [(code, text)] = notes(tmp_path, f"{prefix}consumer.override.isolation.level = read_committed\n")
    assert (code, "write A.consumer.isolation.level" in text) == ("dropped", True)
    assert OVERRIDE in text


def test_what_to_write_names_clusters_of_the_file_though_no_flow_is_named(tmp_path):
    text = "clusters = us, eu\nus.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\nenabled = true\n"
    found = [note.text for note in load(tmp_path, f"{text}producer.batch.size = 1\nconsumer.check.crcs = true\n").notes]
    assert any("write eu.producer.batch.size" in one for one in found)
    assert any("write us.consumer.check.crcs" in one for one in found)
