/** Values of CDN-Loop that clients send (RFC 8586), for the tables of hostile requests of both versions of HTTP. */

export const passes = (count: number, entry = "gwproxy", between = ", "): string =>
  Array.from({ length: count }, () => entry).join(between);

export const SHORT_PASSES: readonly string[] = [
  "other",
  passes(10),
  "other;a=1, cdn.example:8080, [::1]:80",
  passes(20, "gwproxy2"),
  passes(20, "notgwproxy"),
  `other;a="${passes(20)}"`,
  `${passes(10)}, other;a="gwproxy, \\", gwproxy"`,
];

export const TOO_MANY_PASSES: readonly string[] = [
  passes(11),
  passes(500),
  passes(11, "gwproxy", ","),
  passes(11, "gwproxy", " ,\t"),
  passes(11, "gwproxy", ", , "),
  passes(11, "gwproxy;i=1"),
  passes(11, "gwproxy ; i=1"),
  passes(11, 'gwproxy;i="1"'),
  passes(11, "GwProxy"),
  `other, ${passes(11)}, other`,
  passes(11, "other, gwproxy"),
  // A quote that somebody has opened hides nothing.
  `", ${passes(11)}`,
  `other;a=", ${passes(11)}`,
  `other;a=", ${passes(11, 'gwproxy, other;b="c"')}`,
  `other;a=\\", ${passes(11)}`,
];
