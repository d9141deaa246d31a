from __future__ import annotations

import pytest

from failover.config.jaas import parse_jaas
from failover.errors import ConfigError

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def options(text: str) -> dict[str, str]:
    return {key: value.reveal() for key, value in parse_jaas(text, where="A.sasl.jaas.config").options.items()}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('username="a" password="p"', {"username": "a", "password": "p"}),
        ('username = "a"\n  password\t=\t"p"', {"username": "a", "password": "p"}),
        ("username='a' password='p\"q'", {"username": "a", "password": 'p"q'}),
        ('password="p;\\"=x"', {"password": 'p;"=x'}),
        (r'password="back\\slash"', {"password": r"back\slash"}),
        (r'password="\a\b\f\n\r\t\v\q"', {"password": "\a\b\f\n\r\t\vq"}),
        (r'password="\101\1\0479"', {"password": "A\x01'9"}),
        (r'password="\400"', {"password": " 0"}),
        ('password="a//b/*c*/#d"', {"password": "a//b/*c*/#d"}),
        ('password=""', {"password": ""}),
        ("username=plain_user-1.x$ password=p", {"username": "plain_user-1.x$", "password": "p"}),
        ('password="é€"', {"password": "é€"}),
        ('/* note; */ username="a" // password="no"\n password="p"', {"username": "a", "password": "p"}),
        ('password="first" password="last"', {"password": "last"}),
        ("", {}),
    ],
)
def test_options(written, expected):
    assert options(f"{MODULE} required {written};") == expected


def test_module_and_flag():
    module = parse_jaas(f"  {MODULE} REQUIRED x=y ;  ", where="k")
    assert (module.name, module.short_name, module.control_flag) == (MODULE, "ScramLoginModule", "required")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no login module"),
        (" // nothing", "names no login module"),
        ("=", "does not begin with the class name"),
        (MODULE, "required"),
        (f"{MODULE} needed;", "required"),
        (f'{MODULE} required password="hunter2"', "semicolon"),
        (f'{MODULE} required password="hunter2;', "quote that is not closed (column 75)"),
        (f'{MODULE} required password="hunter2\n";', "quote that is not closed"),
        (f"{MODULE} required password=2hunter2;", "needs quotes around the value at column 75"),
        (f"{MODULE} required password=hunter2/x;", "needs quotes"),
        (f"{MODULE} required password;", "no value for option 1"),
        (f"{MODULE} required password=;", "no value for option 1"),
        (f'{MODULE} required username="a" hunter2 password="x";', "no value for option 2"),
        (f"{MODULE} required ==hunter2;", "'=' where the name of option 1"),
        (f'{MODULE} required password="hunter2"; {MODULE} required;', "more than one login module"),
    ],
)
def test_bad_syntax_names_the_key_and_shows_no_text(text, words):
    with pytest.raises(ConfigError) as caught:
        parse_jaas(text, where="A.sasl.jaas.config (f:3)")
    assert caught.value.message.startswith("A.sasl.jaas.config (f:3) ")
    assert words in caught.value.message
    assert "hunter" not in caught.value.message + caught.value.hint


def test_options_are_hidden():
    assert "hunter2" not in repr(parse_jaas(f'{MODULE} required password="hunter2";', where="k"))
