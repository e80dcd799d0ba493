/**
 * Strict fakes of the services of cloud A that hand out credentials: the metadata service of instances (version 2), the
 * agent of containers, and the token service. They verify method, path, headers and every parameter, and count calls.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";
import { findSignatureFault, type ExpectedKeys } from "./llm/aws-signature.ts";

export interface AwsServices {
  readonly url: string;
  /** What was asked for, such as `sts AssumeRole`. */
  readonly calls: string[];
  /** Parameters of calls of the token service, in their order. */
  readonly parameters: URLSearchParams[];
  /** Replaces the answer of every call. */
  answer: ((path: string) => { readonly status: number; readonly body: string } | undefined) | undefined;
  /** Time until credentials end. */
  lifetimeMs: number;
  /** How far the clock of the services is ahead of ours. */
  aheadMs: number;
}

const SESSION = "session-of-metadata";

/** @param signer keys that calls of the token service have to be signed with */
export async function startAwsServices(
  context: ProofContext,
  keys: Pick<ExpectedKeys, "accessKeyId" | "secretAccessKey"> & { readonly sessionToken: string },
  signer?: ExpectedKeys,
): Promise<AwsServices> {
  const services: AwsServices = {
    url: "",
    calls: [],
    parameters: [],
    answer: undefined,
    lifetimeMs: 3_600_000,
    aheadMs: 0,
  };
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, text } = reply(request, await readBody(request));
    response.writeHead(status, { date: new Date(Date.now() + services.aheadMs).toUTCString() }).end(text);
  }
  const expiration = (): string => new Date(Date.now() + services.aheadMs + services.lifetimeMs).toISOString();
  const json = (): string =>
    JSON.stringify({
      Code: "Success",
      AccessKeyId: keys.accessKeyId,
      SecretAccessKey: keys.secretAccessKey,
      Token: keys.sessionToken,
      Expiration: expiration(),
    });

  function reply(request: IncomingMessage, body: Buffer): { status: number; text: string } {
    const { method, url = "", headers } = request;
    const given = services.answer?.(url);
    if (given !== undefined) {
      services.calls.push("replaced");
      return { status: given.status, text: given.body };
    }
    if (method === "PUT" && url === "/latest/api/token") {
      services.calls.push("metadata token");
      return headers["x-aws-ec2-metadata-token-ttl-seconds"] === undefined
        ? bad("no ttl")
        : { status: 200, text: SESSION };
    }
    if (url.startsWith("/latest/meta-data/")) {
      services.calls.push(`metadata ${url}`);
      if (method !== "GET" || headers["x-aws-ec2-metadata-token"] !== SESSION) return { status: 401, text: "" };
      if (url.endsWith("/security-credentials/")) return { status: 200, text: "role-of-machine" };
      if (url.endsWith("/security-credentials/role-of-machine")) return { status: 200, text: json() };
      return url.endsWith("/placement/region") ? { status: 200, text: "eu-west-1" } : { status: 404, text: "" };
    }
    if (url === "/container") {
      services.calls.push("container");
      return headers.authorization === "token-of-agent" ? { status: 200, text: json() } : { status: 401, text: "" };
    }
    return sts(request, body);
  }

  function sts(request: IncomingMessage, body: Buffer): { status: number; text: string } {
    const parameters = new URLSearchParams(body.toString());
    const action = parameters.get("Action") ?? "";
    services.calls.push(`sts ${action}`);
    services.parameters.push(parameters);
    if (request.method !== "POST" || request.url !== "/" || parameters.get("Version") !== "2011-06-15")
      return bad("form");
    if (!request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded")) return bad("content type");
    if (action === "AssumeRole") {
      const { rawHeaders, url = "", method = "" } = request;
      const nowMs = Date.now() + services.aheadMs;
      const fault =
        signer === undefined ? "nobody may" : findSignatureFault({ method, url, rawHeaders, body }, signer, nowMs);
      if (fault !== undefined) return { status: 403, text: fault };
    } else if (action !== "AssumeRoleWithWebIdentity" || request.headers.authorization !== undefined)
      return bad(action);
    const { accessKeyId, secretAccessKey, sessionToken } = keys;
    const credentials = `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${expiration()}</Expiration>`;
    return {
      status: 200,
      text: `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials>${credentials}</Credentials></${action}Result></${action}Response>`,
    };
  }

  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(services, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

function bad(text: string): { status: number; text: string } {
  return { status: 400, text };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
