/** The signer of botocore, for the slow lane: a second opinion on signatures. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { programs } from "./programs.ts";

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
  const python = join(await programs("python"), "python");
  const child = spawn(python, [join(import.meta.dirname, "sign.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = requests.map((request) => JSON.stringify({ ...request, body: request.body.toString("base64") }));
  child.stdin.end(`${lines.join("\n")}\n`);
  return (await text(child.stdout)).trimEnd().split("\n");
}
