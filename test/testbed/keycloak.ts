/** A real Keycloak on loopback, for the slow lane. Brought by Maven once, kept in a cache outside the checkout. Needs Java 17. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { freePort } from "../support/fixtures/free-ports.ts";
import { call } from "../support/clients/http.ts";
import type { ProofContext } from "../support/proofs/prove.ts";

const VERSION = "26.4.0";
const ARTIFACT = "org.keycloak:keycloak-quarkus-dist";
const COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

export interface Keycloak {
  /** http://127.0.0.1:port */
  readonly url: string;
  /** A call of the admin API. @param path below /admin/realms @returns the parsed answer, undefined for an empty one */
  admin(method: string, path: string, body?: object): Promise<unknown>;
  /** A token by the direct grant of a client. */
  token(realm: string, form: Readonly<Record<string, string>>): Promise<string>;
}

export async function startKeycloak(context: Pick<ProofContext, "after">): Promise<Keycloak> {
  const home = await distribution();
  const port = await freePort();
  const password = randomBytes(18).toString("base64url");
  const place = ["--http-host=127.0.0.1", `--http-port=${port}`, "--db=dev-mem"];
  const child = spawn("bash", [join(home, "bin/kc.sh"), "start-dev", ...place], {
    env: { ...process.env, KC_BOOTSTRAP_ADMIN_USERNAME: "admin", KC_BOOTSTRAP_ADMIN_PASSWORD: password },
    stdio: ["ignore", "pipe", "inherit"],
    // A group of its own: the script starts Java, and both have to end with the test.
    detached: true,
  });
  context.after(() => void (child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, "SIGKILL")));
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, "exit").then(() => Promise.reject(new Error("Keycloak ended before it had started")));
  const started = (async () => {
    for await (const line of lines) {
      if (line.includes("Listening on:")) return;
    }
  })();
  await Promise.race([started, ended]);
  // What it says later is of no interest, but has to be read.
  child.stdout.resume();
  ended.catch(() => undefined);

  const url = `http://127.0.0.1:${port}`;
  const token = async (realm: string, form: Readonly<Record<string, string>>): Promise<string> => {
    const body = new URLSearchParams({ grant_type: "password", ...form }).toString();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await call(`${url}/realms/${realm}/protocol/openid-connect/token`, {
      method: "POST",
      headers,
      body,
    });
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.body}`);
    return (JSON.parse(answer.body) as { access_token: string }).access_token; // as RFC 6749 5.1 says
  };
  return {
    url,
    token,
    async admin(method, path, body) {
      const bearer = await token("master", { client_id: "admin-cli", username: "admin", password });
      const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await call(`${url}/admin/realms${path}`, { method, headers, ...text });
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
      return answer.body === "" ? undefined : (JSON.parse(answer.body) as unknown);
    },
  };
}

/** @returns the unpacked distribution; brings it first when it is missing */
async function distribution(): Promise<string> {
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "gwproxy-testbed");
  const home = join(cache, `keycloak-${VERSION}`);
  if (existsSync(home)) return home;
  const run = promisify(execFile);
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-keycloak-"));
  try {
    process.stderr.write("testbed: bringing Keycloak, this happens once ...\n");
    await run("mvn", ["-q", "-B", COPY, `-Dartifact=${ARTIFACT}:${VERSION}:zip`, `-DoutputDirectory=${folder}`]);
    const archive = join(folder, `keycloak-quarkus-dist-${VERSION}.zip`);
    await run("python3", ["-m", "zipfile", "-e", archive, folder]);
    // Moved into place only when whole, so that an interrupted download is never taken for a finished one.
    const staged = `${home}.${process.pid}`;
    await run("cp", ["-r", join(folder, `keycloak-${VERSION}`), staged]);
    renameSync(staged, home);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return home;
}
