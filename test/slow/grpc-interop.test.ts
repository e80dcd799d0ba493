/** gRPC's own interoperability cases: the Go client of the project against its Go server, with a GRPCRoute in between. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createAuthority, createLeaf } from "../../src/lib/certificates/x509.ts";
import { freePort } from "../support/fixtures/free-ports.ts";
import { documents, pemObject, startGateway, staticBackend } from "../support/gateway/gateway.ts";
import { interopObjects } from "../support/servers/grpc-interop.ts";
import { eventually } from "../support/gateway/process.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { validNow } from "../support/servers/tls-upstream.ts";
import { programs } from "../testbed/programs.ts";

const CASES = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "timeout_on_sleeping_server",
  "cancel_after_begin",
  "cancel_after_first_response",
  "status_code_and_message",
  "special_status_message",
  "custom_metadata",
  "unimplemented_method",
  "unimplemented_service",
  "rpc_soak",
  "channel_soak",
];

async function startServer(t: TestContext): Promise<number> {
  const port = await freePort();
  const child = spawn(join(await programs("protocols"), "grpc-server"), ["-port", String(port)], { stdio: "ignore" });
  t.after(() => void child.kill("SIGKILL"));
  await eventually(async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.destroy();
  });
  return port;
}

/** @returns what the client complains about; "" when the case holds */
async function run(name: string, port: string, more: readonly string[]): Promise<string> {
  const fixed = ["-server_host", "127.0.0.1", "-server_port", port, "-test_case", name];
  const child = spawn(join(await programs("protocols"), "grpc-client"), [...fixed, ...more], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null]; // as the event is declared
  return code === 0 ? "" : said || `exit code ${code}`;
}

test("gRPC's interoperability cases hold through a GRPCRoute, on plain text and behind TLS", async (t) => {
  const authority = createAuthority("test", validNow());
  const { certificate, key } = createLeaf(authority, ["interop.test"], validNow());
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-interop-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const ca = join(folder, "ca.crt");
  writeFileSync(ca, authority.certificate);
  const secret = pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key });
  const backend = staticBackend("interop", await startServer(t));
  const gateway = await startGateway(contextOf(t), documents(interopObjects(), secret, backend));
  assert.deepEqual(gateway.problems(), []);
  const trust = ["-use_tls", "-use_test_ca", "-ca_file", ca, "-server_host_override", "interop.test"];
  for (const name of CASES) {
    await t.test(name, async () => {
      assert.equal(await run(name, new URL(gateway.url()).port, []), "");
      assert.equal(await run(name, new URL(gateway.url(8443)).port, trust), "");
    });
  }
});
