/** The signer of botocore, for the slow lane: a second opinion on signatures. Installed once into a cache outside the checkout. */
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";

const VERSION = "1.43.11";
const run = promisify(execFile);

export interface RequestToSign {
  readonly method: string;
  readonly host: string;
  /** Path and query as they leave. */
  readonly path: string;
  /** Only those that a signature has to cover; those that a signature adds are left out. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** "" for none. */
  readonly sessionToken: string;
  readonly region: string;
  readonly service: string;
  /** As `x-amz-date` has it. */
  readonly time: string;
}

/** @returns the header `Authorization` for each request */
export async function signWithBotocore(requests: readonly RequestToSign[]): Promise<string[]> {
  const python = join(await installed(), "bin/python");
  const child = spawn(python, [join(import.meta.dirname, "sign.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = requests.map((request) => JSON.stringify({ ...request, body: request.body.toString("base64") }));
  child.stdin.end(`${lines.join("\n")}\n`);
  return (await text(child.stdout)).trimEnd().split("\n");
}

async function installed(): Promise<string> {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "gwproxy-testbed", `botocore-${VERSION}`);
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const unfinished = mkdtempSync(`${folder}-`);
  await run("python3", ["-m", "venv", unfinished]);
  await run(join(unfinished, "bin/python"), ["-m", "pip", "install", "--quiet", `botocore==${VERSION}`]);
  // Moved into place only when whole, so that an interrupted installation is never taken for a finished one.
  renameSync(unfinished, folder);
  return folder;
}
