// Writes the test vectors of query_set_hash: node query-set-hash.mjs > query-set-hash.json
import { createHash } from "node:crypto";

function computeQuerySetHash(queries) {
  const normalized = queries
    .map((q) => q.trim().replace(/\s+/g, " "))
    .sort()
    .join("\n");
  return createHash("sha256").update(normalized).digest("hex");
}

const spaces =
  "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";
const notSpaces = "\u0085\u001c\u001d\u001e\u001f\u180e\u200b\u200c\u200d\u2060";

const cases = {
  "one query": ["python"],
  "no query at all": [],
  "an empty query": [""],
  "order does not matter": ["b", "a"],
  "order does not matter, the other way": ["a", "b"],
  "case matters": ["Python"],
  "white space around": ["  python \t"],
  "runs of white space": ["data \t\n  science"],
  "a query twice": ["a", "a"],
  "Japanese with an ideographic space": ["\u3000機械学習\u3000入門 "],
  "every kind of white space is one space": [`a${spaces}b`],
  "every kind of white space is trimmed": [`${spaces}a${spaces}`],
  "what looks like white space and is none": [`${notSpaces}a${notSpaces}b${notSpaces}`],
  "a byte order mark is white space": ["\ufeffpython\ufeff3"],
  "next line is no white space": ["a\u0085b"],
  "sorted by UTF-16: a pair comes before U+FF5E": ["\uff5e", "\u{1f4da}"],
  "sorted by UTF-16: a pair comes before U+E000": ["\ue000", "\u{10ffff}", "z"],
  "sorted by code unit, not by language": ["é", "z", "Z", "e", "あ", "ア"],
  "half a pair becomes U+FFFD": ["a\ud83db"],
  "the other half too": ["\ude00"],
  "halves in the wrong order stay halves": ["\ude00\ud83d"],
  "half a pair is sorted as it is": ["\ud83d", "\ufffd", "\ue000"],
  "combining marks are not composed": ["e\u0301", "\u00e9"],
  "NUL and other control characters": ["a\u0000b", "\u0007"],
  "numbers are text": ["10", "9", "1"],
  "one is the beginning of another": ["python", "python 3", "pytho"],
};

const vectors = Object.entries(cases).map(([name, queries]) => ({
  name,
  queries,
  hash: computeQuerySetHash(queries),
}));
// Escaped to ASCII, so that no editor changes what cannot be seen.
const text = JSON.stringify(vectors, null, 2).replace(
  /[\u007f-\uffff]/g,
  (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"),
);
process.stdout.write(text + "\n");
