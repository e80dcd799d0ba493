/** How commands start where a port is taken or a path leads nowhere, and how the quickstart ends. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { freePorts } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY } from "../../support/gateway/gateway.ts";
import { startGwproxy } from "../../support/gateway/process.ts";
import { quickstartManifests } from "../../support/gateway/quickstart.ts";

const ROOT = join(import.meta.dirname, "../../..");
const HOLDER = new RegExp(`the port is taken by .*\\(process ${process.pid}\\)`);
const PLANE = ["--admin-address", "--metrics-address", "--readiness-address"];
const CONTROLLER = ["--xds-address", "--health-address", "--metrics-address", "--admin-address"];
const PROXY = ["proxy", "--xds-address", "127.0.0.1:1", "--gateway", "default/gw"];
const WEBHOOK = ["webhook", "--url", "https://127.0.0.1:9443/validate"];

/** A command, its flags of addresses, and the one of them whose port is taken. */
const COMMANDS: readonly (readonly [args: readonly string[], flags: readonly string[], taken: string])[] = [
  [["up", "-f", join(ROOT, "examples/quickstart")], PLANE, "--metrics-address"],
  [PROXY, PLANE, "--admin-address"],
  [PROXY, PLANE, "--readiness-address"],
  [["controller"], CONTROLLER, "--xds-address"],
  [["controller"], CONTROLLER, "--health-address"],
  [["controller"], CONTROLLER, "--admin-address"],
  [WEBHOOK, ["--address"], "--address"],
];

/** Listens on a port for as long as the test runs. */
async function holdPort(context: TestContext, host = "127.0.0.1"): Promise<number> {
  const [port = 0] = await freePorts(1);
  const server: Server = createServer();
  await new Promise<void>((resolve) => void server.listen(port, host, resolve));
  context.after(() => void server.close());
  return port;
}

for (const [args, flags, taken] of COMMANDS) {
  test(`gwproxy ${args[0]} ends with 1 where the port of ${taken} is taken, and says by whom`, async (t) => {
    const port = await holdPort(t);
    const addresses = flags.flatMap((flag) => [flag, flag === taken ? `127.0.0.1:${port}` : "127.0.0.1:0"]);
    const command = startGwproxy(t, [...args, ...addresses]);
    assert.equal(await command.exited, 1);
    assert.match(command.output(), new RegExp(`gwproxy: ${taken} 127\\.0\\.0\\.1:${port}: `));
    assert.match(command.output(), new RegExp(`or name another address with ${taken}\n`));
    if (process.platform === "linux") assert.match(command.output(), HOLDER);
  });
}

test("two addresses of one process on one port are named both", async (t) => {
  const [port = 0] = await freePorts(1);
  const addresses = PLANE.flatMap((flag) => [flag, `127.0.0.1:${port}`]);
  const up = startGwproxy(t, ["up", "-f", join(ROOT, "examples/quickstart"), ...addresses]);
  assert.equal(await up.exited, 1);
  assert.match(up.output(), /--metrics-address \S+: the port is also that of --admin-address \S+; /);
});

test("an address that is not of this machine ends the start with its cause", async (t) => {
  const up = startGwproxy(t, ["up", "-f", join(ROOT, "examples/quickstart"), "--admin-address", "192.0.2.1:15000"]);
  assert.equal(await up.exited, 1);
  assert.match(up.output(), /--admin-address 192\.0\.2\.1:15000: cannot be opened \(.*EADDRNOTAVAIL/);
});

for (const workers of ["1", "2"]) {
  test(`a Gateway whose port is taken is named last, with its cause (${workers} workers)`, async (t) => {
    const port = await holdPort(t);
    const folder = mkdtempSync(join(tmpdir(), "gwproxy-taken-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, "gateway.yaml"), documents(GATEWAY.replace("port: 8080", `port: ${port}`)));
    const addresses = PLANE.flatMap((flag) => [flag, "127.0.0.1:0"]);
    const up = startGwproxy(t, ["up", folder, "--bind-address", "127.0.0.1", "--workers", workers, ...addresses]);
    await up.printed(/not served on port .*\n/);
    const last = up.output().trimEnd().split("\n").at(-1) ?? "";
    assert.match(last, new RegExp(`^Gateway default/gw is not served on port ${port}: the port is taken by `));
    assert.match(last, /or change the port of the listener$/);
    assert.doesNotMatch(up.output(), /no Gateway/);
  });
}

test("gwproxy up ends with 2 for a path that leads nowhere, also where another one exists", async (t) => {
  for (const paths of [
    ["-f", "no/such/folder"],
    ["-f", "examples/quickstart", "-f", "no/such/folder"],
  ]) {
    const up = startGwproxy(t, ["up", ...paths]);
    assert.equal(await up.exited, 2);
    assert.match(up.output(), /^gwproxy: -f no\/such\/folder: no such file or folder; /m);
  }
});

interface Quickstart {
  readonly folder: string;
  readonly ports: readonly number[];
  readonly env: NodeJS.ProcessEnv;
}

/** The quickstart as it is, on ports that nothing else uses. */
async function copyQuickstart(t: TestContext): Promise<Quickstart> {
  const ports = await freePorts(3);
  const [gateway = 0, hello = 0, provider = 0] = ports;
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-make-up-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["Makefile", "examples"]) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  for (const part of ["bin", "src", "generated", "node_modules", "package.json"])
    symlinkSync(join(ROOT, part), join(folder, part));
  const start = join(folder, "examples/quickstart/start.ts");
  const text = readFileSync(start, "utf8");
  const moved = text
    .replace("9001", `${hello}`)
    .replace("9002", `${provider}`)
    .replace("PORT = 8080", `PORT = ${gateway}`);
  writeFileSync(start, moved);
  for (const [file, manifest] of quickstartManifests({ gateway, hello, provider }))
    writeFileSync(join(folder, "examples/quickstart", file), manifest);
  const address = "127.0.0.1:0";
  return { folder, ports, env: { ...process.env, ADMIN_ADDR: address, STATS_ADDR: address, READINESS_ADDR: address } };
}

interface Started {
  readonly child: ChildProcess;
  output(): string;
  readonly printed: Promise<void>;
  readonly exited: Promise<number | string>;
}

/** @param until resolves `printed` */
function start(t: TestContext, { env }: Quickstart, command: readonly string[], until: RegExp): Started {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  let text = "";
  const printed = Promise.withResolvers<void>();
  const collect = (chunk: Buffer): void => {
    text += chunk.toString();
    if (until.test(text)) printed.resolve();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const exited = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => {
      printed.reject(new Error(`it ended before it printed ${until}:\n${text}`));
      resolve(code ?? signal ?? "");
    });
  });
  printed.promise.catch(() => undefined);
  t.after(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  return { child, output: () => text, printed: printed.promise, exited };
}

const HINTS = /change a file in examples\/quickstart/;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`the quickstart ends with 0 when its process group gets ${signal}`, async (t) => {
    const quickstart = await copyQuickstart(t);
    const command = [process.execPath, join(quickstart.folder, "examples/quickstart/start.ts")];
    const started = start(t, quickstart, command, HINTS);
    await started.printed;
    process.kill(-(started.child.pid ?? 0), signal);
    assert.equal(await started.exited, 0, started.output());
  });
}

test("make up ends with 0 after Ctrl-C in a terminal", { skip: process.platform !== "linux" }, async (t) => {
  const quickstart = await copyQuickstart(t);
  const make = `make --no-print-directory -o install -C ${quickstart.folder} up`;
  const started = start(t, quickstart, ["script", "-qec", make, "/dev/null"], HINTS);
  await started.printed;
  started.child.stdin?.write("\u0003");
  assert.equal(await started.exited, 0, started.output());
  assert.doesNotMatch(started.output(), /\*\*\*|Error/);
});

test("make up says who holds a port that it needs", async (t) => {
  const quickstart = await copyQuickstart(t);
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(quickstart.ports[2], "127.0.0.1", resolve));
  t.after(() => void server.close());
  const make = ["make", "--no-print-directory", "-o", "install", "-C", quickstart.folder, "up"];
  const started = start(t, quickstart, make, /$^/);
  assert.notEqual(await started.exited, 0);
  assert.match(started.output(), new RegExp(`port ${quickstart.ports[2]} of the mock provider: `));
  if (process.platform === "linux") assert.match(started.output(), HOLDER);
});
