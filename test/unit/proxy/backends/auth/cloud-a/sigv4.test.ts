/** AWS Signature Version 4 against the published test vectors, and which headers it covers. */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import { HeaderList } from "../../../../../../src/lib/header-list.ts";
import { signRequest, type AwsCredentials } from "../../../../../../src/proxy/backends/auth/cloud-a/sigv4.ts";

const CREDENTIALS: AwsCredentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  sessionToken: "",
};
const SCOPE = { region: "us-east-1", service: "service" };
const NOW = Date.UTC(2015, 7, 30, 12, 36);
const UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = "application/x-www-form-urlencoded";

interface Vector {
  readonly method?: string;
  readonly path: string;
  readonly headers?: string[];
  readonly body?: string;
  readonly signature: string;
}

const VANILLA = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";

/** By the names of the published suite, for the default credentials, scope and time. */
const VECTORS: Readonly<Record<string, Vector>> = {
  "get-vanilla": { path: "/", signature: VANILLA },
  "get-slash": { path: "//", signature: VANILLA },
  "get-relative": { path: "/example/..", signature: VANILLA },
  "get-relative-relative": { path: "/example1/example2/../..", signature: VANILLA },
  "get-slash-dot-slash": { path: "/./", signature: VANILLA },
  "get-slashes": {
    path: "//example//",
    signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
  },
  "get-slash-pointless-dot": {
    path: "/./example",
    signature: "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
  },
  "get-space": {
    path: "/example space/",
    signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
  },
  "get-unreserved": {
    path: `/${UNRESERVED}`,
    signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
  },
  "get-utf8": { path: "/ሴ", signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
  "get-vanilla-empty-query-key": {
    path: "/?Param1=value1",
    signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
  },
  "get-vanilla-query-order-key-case": {
    path: "/?Param2=value2&Param1=value1",
    signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  },
  "get-vanilla-query-unreserved": {
    path: `/?${UNRESERVED}=${UNRESERVED}`,
    signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
  },
  "get-vanilla-utf8-query": {
    path: "/?ሴ=bar",
    signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
  },
  "post-vanilla": {
    method: "POST",
    path: "/",
    signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  },
  "post-vanilla-query": {
    method: "POST",
    path: "/?Param1=value1",
    signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
  },
  "post-x-www-form-urlencoded": {
    method: "POST",
    path: "/",
    headers: ["Content-Type", FORM],
    body: "Param1=value1",
    signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  },
  "post-x-www-form-urlencoded-parameters": {
    method: "POST",
    path: "/",
    headers: ["Content-Type", `${FORM}; charset=utf8`],
    body: "Param1=value1",
    signature: "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
  },
};

interface Signed {
  readonly headers: HeaderList;
  readonly authorization: string;
}

function sign(
  { method = "GET", path, headers = [], body = "" }: Omit<Vector, "signature">,
  credentials: AwsCredentials = CREDENTIALS,
  nowMs: number = NOW,
): Signed {
  const list = new HeaderList(["Host", "example.amazonaws.com", ...headers]);
  signRequest({ method, path, headers: list, body: Buffer.from(body) }, credentials, SCOPE, nowMs);
  return { headers: list, authorization: list.get("authorization") ?? "" };
}

function signedNames(authorization: string): string {
  return /SignedHeaders=([^,]*)/.exec(authorization)?.[1] ?? "";
}

for (const [name, vector] of Object.entries(VECTORS))
  test(`the published vector ${name} gives the published signature`, () => {
    const names = vector.headers === undefined ? "host;x-amz-date" : "content-type;host;x-amz-date";
    assert.equal(
      sign(vector).authorization,
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
        `SignedHeaders=${names}, Signature=${vector.signature}`,
    );
  });

/** Computes a signature from a canonical request with the usual functions. */
function expected(canonical: readonly string[], secret: string, day: string): string {
  const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const scope = [day, SCOPE.region, SCOPE.service, "aws4_request"];
  const digest = createHash("sha256").update(canonical.join("\n"), "latin1").digest("hex");
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secret}`);
  return hmac(key, ["AWS4-HMAC-SHA256", `${day}T123600Z`, scope.join("/"), digest].join("\n")).toString("hex");
}

const NOTHING = createHash("sha256").digest("hex");

test("headers of the service are signed, those that hops may change are not", () => {
  const { headers, authorization } = sign({
    path: "/model/anthropic.claude-v2%3A1/invoke?b=%2f+&a&b=1%zz",
    headers: [
      "X-Amzn-Bedrock-Trace",
      "  two   spaces\t",
      "x-amz-b",
      "2",
      "X-Amz-B",
      "1é",
      "Date",
      "today",
      "X-Amzn-Trace-Id",
      "Root=1",
      "user-agent",
      "x",
      "x-amzing",
      "x",
      "x-amzn",
      "x",
      "accept",
      "*/*",
    ],
  });
  const names = "date;host;x-amz-b;x-amz-date;x-amzn-bedrock-trace";
  assert.equal(signedNames(authorization), names);
  const canonical = [
    "GET",
    "/model/anthropic.claude-v2%253A1/invoke",
    "a=&b=%2F%2B&b=1%25zz",
    "date:today",
    "host:example.amazonaws.com",
    "x-amz-b:2,1é",
    "x-amz-date:20150830T123600Z",
    "x-amzn-bedrock-trace:two spaces",
    "",
    names,
    NOTHING,
  ];
  assert.match(authorization, new RegExp(expected(canonical, CREDENTIALS.secretAccessKey, "20150830")));
  assert.equal(headers.get("x-amzn-trace-id"), "Root=1");
});

test("a client's own signature is replaced whole, and a session token is signed", () => {
  const { headers, authorization } = sign(
    {
      path: "/",
      headers: [
        "Authorization",
        "Bearer client",
        "X-Amz-Date",
        "x",
        "x-amz-content-sha256",
        "x",
        "X-Amz-Security-Token",
        "client",
        "x-amz-security-token",
        "client",
      ],
    },
    { ...CREDENTIALS, sessionToken: "session" },
  );
  assert.deepEqual(headers.raw.slice(0, -1), [
    "Host",
    "example.amazonaws.com",
    "x-amz-date",
    "20150830T123600Z",
    "x-amz-security-token",
    "session",
    "authorization",
  ]);
  assert.equal(signedNames(authorization), "host;x-amz-date;x-amz-security-token");
});

test("a key is derived anew on another day, for other credentials and from a long secret", () => {
  const canonical = (day: string): string[] => [
    "GET",
    "/",
    "",
    "host:example.amazonaws.com",
    `x-amz-date:${day}T123600Z`,
    "",
    "host;x-amz-date",
    NOTHING,
  ];
  const long = { ...CREDENTIALS, secretAccessKey: "k".repeat(100) };
  for (const credentials of [CREDENTIALS, long, CREDENTIALS])
    for (const [day, at] of [["20150830", NOW] as const, ["20150831", NOW + 86_400_000] as const])
      assert.match(
        sign({ path: "/" }, credentials, at).authorization,
        new RegExp(`Signature=${expected(canonical(day), credentials.secretAccessKey, day)}$`),
      );
});
