"""Which failures are the same bug: a short hash of job type, exception class and normalised message.

Guarantees: the hash is the same in every process and release as long as its version prefix is; normalising
takes time linear in the message. Messages that differ only in what a call was about (ids, numbers, quoted
text, addresses, paths, instants) are equal afterwards; names that belong to the program (an attribute, an
argument, a constraint, a column, the class before "object") stay. The price: two bugs whose messages differ only
in another such value share a group, unless their exception classes differ.
"""

from __future__ import annotations

import hashlib
import json
import re

VERSION = 1
LONGEST_MESSAGE = 8192  # characters

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?"

# Each alternative starts where no earlier start could have reached, or has a bounded or possessive
# repetition: no text makes the scan go back over the same characters more than a few times.
_VARIABLE_PARTS = {
    "name": r"(?<!\w)(?:attribute|keyword argument|arguments?:|(?<=No )module named|(?<=cannot import )name) '[\w.]++'"
    r"(?: and '\w++')?"
    r"|(?<!\w)name '\w++'(?= is not defined)|(?<!\w)'\w++'(?= object\b)"
    r"|(?<!\w)(?:constraint|relation|table|column|index|function|sequence) \"[\w.]++\"",
    "values": r"(?<=\)=)\([^\n]*\)|(?<=Failing row contains )[^\n]++",
    "host": r"(?<![\w.-])(?:[A-Za-z0-9-]++\.)++[A-Za-z]{2,}+:\d{1,5}(?!\w)",
    "url": r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s'\"<>]+",
    "email": r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+",
    "str": r"(?<!\w)[bBrRuU]?'(?!\d{3} [A-Z][a-z])[^'\n]*+'(?!\w)|(?<!\w)[bBrRuU]?\"[^\"\n]*+\"(?!\w)"
    r"|`[^`\n]*+`|“[^“”\n]*+”|«[^«»\n]*+»",
    "uuid": r"(?<!\w)[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?!\w)",
    "time": r"datetime\.(?:datetime|date|time|timedelta)\([^()\n]{0,200}\)"
    rf"|(?<![\w-])\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:(?:T|\s){_CLOCK})?(?!\w)"
    rf"|(?<!\w)(?:{_DAY},?\s)?\d{{1,2}}[\s-]{_MONTH}[\s-]\d{{4}}(?:\s{_CLOCK})?"
    rf"|(?<!\w)(?:{_DAY},?\s)?{_MONTH}\s\d{{1,2}},?\s\d{{4}}(?:\s{_CLOCK})?"
    r"|(?<![\w/])\d{1,2}[/.]\d{1,2}[/.]\d{4}(?!\w)"
    rf"|(?<![\w:])(?:{_CLOCK})(?![\w:])",
    "path": r"(?<=with url: )/\S*+|(?<![\w./\\~-])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s'\"<>:,;()\[\]{}|]+"
    r"|(?<![\w./-])[\w.-]++(?:/[\w.-]++){2,}",
    "hex": r"(?<!\w)(?:0[xX][0-9A-Fa-f]++|(?=[A-Fa-f]*+\d)[0-9A-Fa-f]{8,}+)(?!\w)",
    "id": r"(?<!\w)[a-z]{2,6}_(?=[A-Za-z]*+\d)[A-Za-z0-9]{8,}+(?!\w)",
    "n": r"(?:(?<!\w)[-+])?\d++(?:[.,]\d++)*+(?:[eE][-+]?\d{1,4}(?!\w))?",
    "space": r"\s+",
}
_NUMBER = re.compile(r"\d+")
_VARIABLE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _VARIABLE_PARTS.items()))


def fingerprint(job_type: str, error_type: str, message: str) -> str:
    """The group of a failure, such as ``1:9f86d081884c7d65``: a version, a colon and 64 bits of SHA-256."""
    parts = json.dumps([job_type, error_type, normalise(message)])
    return f"{VERSION}:{hashlib.sha256(parts.encode()).hexdigest()[:16]}"


def normalise(message: str) -> str:
    """The message with every variable part replaced by its kind in angle brackets, on one line."""
    return _VARIABLE.sub(_kind, message[:LONGEST_MESSAGE]).strip()


def _kind(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "space":
            return " "
        case "name":
            return _NUMBER.sub("<n>", match[0])
    return f"<{match.lastgroup}>"
