import assert from "node:assert/strict";
import { test } from "node:test";

import { RULE_ENVIRONMENT } from "../../../src/cel/environments/index.ts";
import { Flattened } from "../../../src/cel/values.ts";
import { evaluate, fails, gives } from "./support.ts";

const JWT = `h.${Buffer.from('{"aud":"a"}').toString("base64url")}.s`;

gives(
  [
    ["json('{\"n\":4}').n", 4n],
    ["json(b'[1]')[0]", 1n],
    ['toJson([1, "b", {"k": 1.5}])', '[1,"b",{"k":1.5}]'],
    ["unvalidatedJwtPayload(jwt.token).aud", "a"],
    ["size(request.path).with(n, n * n)", 16n],
    ["variables().request.path", "/a/b"],
    ["toJson(flatten({'a': {'b': [1]}, 'c': 2}))", '{"a":{"b":[1]},"c":2}'],
    [
      "toJson(flattenRecursive({'a': {'b': [1, {'d': null}]}, 'c': 2, 'e': {}}))",
      '{"a.b.0":1,"a.b.1.d":null,"c":2,"e":{}}',
    ],
    [
      "flatten_recursive([[1], 'x'])",
      new Flattened(
        new Map<unknown, unknown>([
          ["0.0", 1n],
          ["1", "x"],
        ]),
      ),
    ],
    ["flatten('x')", "x"],
    ['{"a": 2}.mapValues(v, v + 1) == {"a": 3}', true],
    ['{"x-a": 1, "b": 2}.filterKeys(k, k.startsWith("x-")) == {"x-a": 1}', true],
    ['{"a": 1, "b": 1}.merge({"a": 5}) == {"a": 5, "b": 1}', true],
    ['base64.encode("hi")', "aGk="],
    ['string(base64.decode("aGk"))', "hi"],
    ['url.encode("a b/c")', "a%20b%2Fc"],
    ['url.decode("a%20b+c")', "a b+c"],
    ['form.encode({"q": "a b", "n": null, "l": ["1", 2]})', "l=1&l=2&q=a+b"],
    ['form.decode("a=1&a=2&b=x") == {"a": ["1", "2"], "b": "x"}', true],
    ['sha256.encode("k")', "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"],
    ["size(sha1.encode(b'x')) == 40 && size(md5.encode('x')) == 32", true],
    ["random() >= 0.0 && random() < 1.0", true],
    ['uuid().matches("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")', true],
    ['default(null, "d")', "d"],
    ["coalesce(null, 1 / 0, 3)", 3n],
    ["coalesce(1 / 0, null) == null", true],
    ['"a1b2".regexReplace("[0-9]", "#")', "a#b2"],
    ['"john smith".regexReplace("(?P<first>\\\\w+) (\\\\w+)", "$2 ${first} $$")', "smith john $"],
    ['"v1.2".stripPrefix("v").split(".")[0]', "1"],
    ['"a.txt".stripSuffix(".txt") + "b".stripSuffix(".txt")', "ab"],
    ['"héllo".charAt(1) + "héllo".substring(1, 3)', "éél"],
    ['"😀a😀".indexOf("a") + "😀a😀".lastIndexOf("😀")', 3n],
    ['"  x ".trim() + "aBc".upperAscii() + "ABÉ".lowerAscii()', "xABCabÉ"],
    ['"a-b-c".replace("-", "+", 1) + ["x", "y"].join("/")', "a+b-cx/y"],
    ['"a,b,c".split(",", 2)', ["a", "b,c"]],
    ["math.greatest(2, 7) + math.least([3, 1])", 8n],
    ["max(1, 3, 2) - min(4, 5)", -1n],
    ["math.round(-1.5) == -2.0 && math.ceil(1.2) == 2.0 && math.abs(-3) == 3", true],
    ["math.bitShiftRight(-1, 60)", 15n],
    ['"a" in "abc" && !("d" in "abc")', true],
    ['request.uri.query("k")', ["v", "w"]],
    ['request.uri.setQuery("k", "x y").addQuery("n", "1")', "http://h/a?k=x+y&n=1"],
    ["optional.of(1).orValue(2) + optional.none().orValue(3)", 4n],
  ],
  { request: { path: "/a/b", uri: "http://h/a?k=v&k=w" }, jwt: { token: JWT } },
);

gives([
  ['ip("::1").family()', 6n],
  ['ip("192.168.0.1").family()', 4n],
  ['string(ip("2001:DB8:0:0::1"))', "2001:db8::1"],
  ['ip("::ffff:a00:1") == ip("10.0.0.1")', true],
  ['cidr("10.2.0.0/16").containsIP("10.2.255.1")', true],
  ['cidr("10.2.0.0/16").containsIP("10.3.0.1")', false],
  ['cidr("10.2.0.0/16").containsIP("::ffff:10.2.0.1")', true],
  ['cidr("2001:db8::/32").containsIP("2001:db8:1::5")', true],
  ['cidr("0.0.0.0/0").containsIP("::1")', false],
  ['cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', true],
  ['string(cidr("10.2.3.4/16").masked())', "10.2.0.0/16"],
  ['ip("127.0.0.1").isLoopback() && ip("fe80::1").isLinkLocalUnicast() && ip("8.8.8.8").isGlobalUnicast()', true],
  ['isIP("1.2.3.4") && !isIP("01.2.3.4") && !isIP("1.2.3") && !isIP("fe80::1%eth0")', true],
]);

fails([
  ['cidr("10.0.0.0/33")', "invalid_argument"],
  ['cidr("10.0.0.0/8").containsIP("nonsense")', "invalid_argument"],
  ["json('{')", "invalid_argument"],
  ['base64.decode("a*")', "invalid_argument"],
  ['unvalidatedJwtPayload("a.b")', "invalid_argument"],
  ['fail("who?")', "failed"],
  ["default(1 / 0, 2)", "division_by_zero"],
  ["coalesce()", "invalid_argument"],
  ['"a".query("k")', "no_such_key"],
]);

test("fail() carries its message", () => {
  assert.throws(() => evaluate('fail("who?")'), /^CelError: who\?$/);
});

const SELF = {
  self: {
    name: "a",
    namespace: "ns",
    "with-dash": 1,
    rules: [{ name: "x" }, { name: "y" }],
    ratio: 1,
    count: 3,
  },
  oldSelf: { name: "a" },
};

gives(
  [
    ["self.__namespace__ == 'ns' && self.with__dash__dash == 1", true],
    ["self.rules.all(r, self.rules.exists_one(o, o.name == r.name))", true],
    ["self.name == oldSelf.name", true],
    ["self.?missing.orValue('d')", "d"],
    ["has(self.name) && !has(self.missing)", true],
    ["self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", true],
    ["quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1.5').compareTo(quantity('1500m')) == 0", true],
    ["quantity('2k').asInteger() + quantity('1').add(2).asInteger()", 2003n],
    ["isQuantity('10Mi') && !isQuantity('10MB') && !isQuantity('')", true],
    ["isURL('https://a.test/x') && isURL('/path') && !isURL('a b') && !isURL('nope')", true],
    ["isURL('http://256.0.0.1/') && isURL('https://x/#a') && isURL('mailto:x') && isURL('/a b') && isURL('*')", true],
    [
      "['', 'a/b', 'http://a b/', 'http://a#b', 'http://a:b/', 'http://[1]/', 'http://a/%z'].exists(u, isURL(u))",
      false,
    ],
    [
      "url('https://x/a#b').getEscapedPath() + url('/a b%41').getEscapedPath() + url('/%41').getEscapedPath()",
      "/a/a%20bA/%41",
    ],
    ["url('HTTP://a,%e4%bd%a0:1').getScheme() + url('HTTP://a,%e4%bd%a0:1').getHost()", "httpa,你:1"],
    ["url('http://[fe80::1%25en0]:80').getHostname()", "fe80::1%en0"],
    ["url('/?a=1+2&b;c=1&d=%zz&a').getQuery() == {'a': ['1 2', '']}", true],
    ["url('https://u@a.test:81/p?q=1').getHost() + url('https://a.test:81').getPort()", "a.test:8181"],
    ["url('https://[::1]:80/').getHostname() + url('/p?q=1&q=2').getQuery()['q'][1]", "::12"],
    ["[1, 2].isSorted() && [1, 2].sum() == 3 && [3, 1].min() == 1 && ['a', 'b'].max() == 'b'", true],
    ["['a', 'b', 'a'].indexOf('a') + ['a', 'b', 'a'].lastIndexOf('a') + 'ab'.indexOf('b')", 3n],
    ["'abc 123'.find('[0-9]+') + 'a1b2'.findAll('[0-9]')[1]", "1232"],
    ["self.ratio * 1.5 + self.count / 2", 2.5],
    ["duration('1h') > duration('59m') && isIP('::1')", true],
  ],
  SELF,
  RULE_ENVIRONMENT,
);
