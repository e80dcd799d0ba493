/**
 * `make up`: starts the plain service, the mock provider and the gateway on loopback and says what to try.
 * With `--provider openai` or `--provider anthropic` that provider is the real one and takes its key from the environment.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FatalError } from "../../src/lib/errors.ts";
import { checkPorts } from "../../src/lib/network/port-check.ts";
import { serveMockProvider } from "../mock-provider/mock-provider.ts";
import { startHello } from "./hello.ts";

const HELLO_PORT = 9001;
const PROVIDER_PORT = 9002;
/** The listener in gateway.yaml. */
const GATEWAY_PORT = 8080;
const KEY_VARIABLE: Readonly<Record<string, string>> = { openai: "OPENAI_API_KEY", anthropic: "ANTHROPIC_API_KEY" };

const HERE = import.meta.dirname;
const { values } = parseArgs({ options: { provider: { type: "string", default: "mock" } } });

const scratch = mkdtempSync(join(tmpdir(), "gwproxy-quickstart-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

const manifests = values.provider === "mock" ? [HERE] : manifestsFor(values.provider);
await checkOwnPorts();
await startHello(HELLO_PORT);
await serveMockProvider({ port: PROVIDER_PORT, keys: ["mock-key"] });

const gateway = spawn(
  process.execPath,
  [
    join(HERE, "../../bin/gwproxy.mjs"),
    "up",
    ...manifests.flatMap((path) => ["-f", path]),
    "--bind-address",
    "127.0.0.1",
  ],
  // A process group of its own: Ctrl-C reaches every process of the terminal's group, and the gateway would take the copy
  // that is passed on below for a second one, which ends it at once.
  { stdio: ["ignore", "pipe", "inherit"], detached: true },
);
gateway.stdout.pipe(process.stdout);
gateway.stdout.once("data", () => setImmediate(printHints));
gateway.once("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => gateway.kill("SIGTERM"));
if (process.env["MAKELEVEL"] !== undefined) stopWithParent();

/** make ends without a word to a recipe that has the terminal for itself (see the Makefile). */
function stopWithParent(): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    gateway.kill("SIGTERM");
  }, 250);
}

async function checkOwnPorts(): Promise<void> {
  const ports = {
    "the plain service": HELLO_PORT,
    "the mock provider": PROVIDER_PORT,
    "the gateway": GATEWAY_PORT,
  };
  const claims = Object.entries(ports).map(([user, port]) => ({
    subject: `port ${port} of ${user}`,
    host: "127.0.0.1",
    port,
    remedy: "change the port in examples/quickstart",
  }));
  await checkPorts(claims).catch((error: unknown) => {
    if (!(error instanceof FatalError)) throw error;
    process.stderr.write(`quickstart: ${error.message}\n`);
    process.exit(error.exitCode);
  });
}

/** The quickstart with one provider swapped for the real one. The key goes to a private file that dies with us. */
function manifestsFor(provider: string): string[] {
  const variable = KEY_VARIABLE[provider];
  const key = variable === undefined ? undefined : process.env[variable];
  if (variable === undefined || key === undefined || key === "") {
    process.stderr.write(
      variable === undefined
        ? `unknown provider ${provider}; choose one of: mock, ${Object.keys(KEY_VARIABLE).join(", ")}\n`
        : `set ${variable} to use ${provider}\n`,
    );
    process.exit(2);
  }
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "provider", namespace: "default" },
    stringData: { Authorization: key },
  };
  const secretFile = join(scratch, "provider-key.json");
  writeFileSync(secretFile, JSON.stringify(secret), { mode: 0o600 });
  const common = ["gateway.yaml", "routes.yaml", "policies.yaml"].map((file) => join(HERE, file));
  return [...common, join(HERE, "../providers", `${provider}.yaml`), secretFile];
}

function printHints(): void {
  process.stdout.write(`
Try it (Ctrl-C stops everything):

  curl http://127.0.0.1:8080/hello
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Authorization: Bearer alice-key' \\
    -H 'content-type: application/json' -d '{"model":"mock-small","messages":[{"role":"user","content":"Hi"}]}'

  without a key      401        with mallory-key   403        after 2,000 tokens an hour   429
  same format, translated for another vendor:       /anthropic/v1/chat/completions
  what the gateway does, in a browser:              http://127.0.0.1:15000/
  change a file in examples/quickstart and watch this terminal.
`);
}
