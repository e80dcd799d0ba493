/** The cases of h2spec (RFC 9113 and RFC 7541) against a listener on plain text and one behind TLS, strict ones included. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../src/lib/certificates/x509.ts";
import { startEcho } from "../support/servers/echo.ts";
import {
  documents,
  pemObject,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../support/gateway/gateway.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { validNow } from "../support/servers/tls-upstream.ts";
import { programs } from "../testbed/programs.ts";

/** Where nghttp2, which frames for us, does something else on purpose. None of it lets a client do harm. */
const DEVIATIONS: readonly (readonly [id: string, reason: string])[] = [
  ["http2/5.1 closed: Sends a DATA frame after sending RST_STREAM frame", "ignored: the reset may have crossed it"],
  ["http2/5.1 closed: Sends a HEADERS frame after sending RST_STREAM frame", "ignored: the reset may have crossed it"],
  ["http2/5.1 closed: Sends a DATA frame", "ignored, and counted against the windows"],
  ["http2/5.1 closed: Sends a HEADERS frame", "ignored, and decoded for the table's sake"],
  ["http2/5.1.1 Sends stream identifier that is numerically smaller than previous", "ignored as one that is closed"],
  ["http2/5.3.1 Sends PRIORITY frame that depend on itself", "RFC 9113 deprecates priorities: they are not read"],
  ["http2/6.3 Sends a PRIORITY frame with 0x0 stream identifier", "RFC 9113 deprecates priorities: they are not read"],
  ["http2/6.7 Sends a PING frame with ACK", "an acknowledgement that nobody asked for ends the connection"],
  [
    "http2/6.9.1 Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
    "ends the connection and not only the stream",
  ],
];

/** Plain text starts as HTTP/1, so what is no preface is answered with 400 before the connection ends. */
const PLAIN_DEVIATION = "http2/3.5 Sends invalid connection preface";

/**
 * Cases that send more on a request that has ended and count on it being unanswered, as sections of h2spec. They are
 * judged with requests that are never answered: after an answer, the stream is closed, and what follows is ignored.
 */
const UNANSWERED: readonly (readonly [section: string, id: string])[] = [
  ["http2/5.1/5", "http2/5.1 half closed (remote): Sends a DATA frame"],
  ["http2/5.1/6", "http2/5.1 half closed (remote): Sends a HEADERS frame"],
  ["http2/5.1/7", "http2/5.1 half closed (remote): Sends a CONTINUATION frame"],
  [
    "http2/5.1.2/1",
    "http2/5.1.2 Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",
  ],
  ["http2/6.1/2", 'http2/6.1 Sends a DATA frame on the stream that is not in "open" or "half-closed (local)" state'],
];

async function serve(t: TestContext): Promise<TestGateway> {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const { certificate, key } = createLeaf(createAuthority("test", validNow()), ["a.test"], validNow());
  const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
    - {name: http, port: 8080, protocol: HTTP}
    - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`;
  const secret = pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key });
  return startGateway(context, documents(gateway, secret, staticBackend("web", echo.port), route("web", "web")));
}

interface Case {
  readonly id: string;
  readonly passed: boolean;
}

/** @param more arguments of h2spec; sections such as `http2/5.1/5` choose cases */
async function run(t: TestContext, port: string, ...more: readonly string[]): Promise<readonly Case[]> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-h2spec-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const report = join(folder, "report.xml");
  const program = join(await programs("protocols"), "h2spec");
  const child = spawn(program, ["--strict", "--timeout", "5", "--port", port, "--junit-report", report, ...more], {
    stdio: "ignore",
  });
  await once(child, "exit");
  // Its text is what was sent, control characters included; only the skeleton is read.
  const cases = readFileSync(report, "latin1").matchAll(
    /<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.{0,10})/gs,
  );
  return [...cases].map(([, place = "", title = "", inside = ""]) => ({
    id: `${place} ${title.replaceAll("&#39;", "'").replaceAll("&#34;", '"')}`,
    passed: inside.startsWith("</testcase"),
  }));
}

/** @param expected the cases that are known to fail */
async function check(t: TestContext, port: string, expected: readonly string[], ...more: readonly string[]) {
  const answered = await run(t, port, ...more);
  const unanswered = await run(t, port, ...more, "--path", "/slow/200", ...UNANSWERED.map(([section]) => section));
  assert.equal(answered.length, 146);
  assert.deepEqual(
    unanswered,
    UNANSWERED.map(([, id]) => ({ id, passed: true })),
  );
  const apart = new Set(UNANSWERED.map(([, id]) => id));
  const failed = answered.filter(({ id, passed }) => !passed && !apart.has(id)).map(({ id }) => id);
  assert.deepEqual(failed.toSorted(), expected.toSorted());
}

test("a listener passes the cases of h2spec but for those that are known, on plain text and behind TLS", async (t) => {
  const gateway = await serve(t);
  const known = DEVIATIONS.map(([id]) => id);
  await Promise.all([
    check(t, new URL(gateway.url()).port, [...known, PLAIN_DEVIATION]),
    check(t, new URL(gateway.url(8443)).port, known, "--tls", "--insecure"),
  ]);
});
