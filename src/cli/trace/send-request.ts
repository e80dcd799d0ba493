/** Sends the request that `gwproxy trace -- URL` follows, with arguments like those of curl. */
import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { FatalError } from "../../lib/errors.ts";

export interface RequestToSend {
  /** Its host is the Host header and the server name of TLS; the connection goes to a forwarded port. */
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Takes any certificate. */
  readonly isInsecure: boolean;
}

/** @throws FatalError for arguments that are not understood */
export function parseRequest(words: readonly string[]): RequestToSend | undefined {
  if (words.length === 0) return undefined;
  const found = {
    url: "",
    method: "",
    headers: {} as Record<string, string>,
    body: undefined as string | undefined,
    insecure: false,
  };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const value = (): string => {
      const next = words[++at];
      if (next === undefined) throw new FatalError(`${word} needs a value; write it as with curl`, 2);
      return next;
    };
    if (word === "-H" || word === "--header") {
      const [name = "", ...rest] = value().split(":");
      found.headers[name.trim()] = rest.join(":").trim();
    } else if (word === "-X" || word === "--request") found.method = value();
    else if (word === "-d" || word === "--data") found.body = value();
    else if (word === "-k" || word === "--insecure") found.insecure = true;
    else if (word.startsWith("-")) throw new FatalError(`${word} is not understood; use -H, -X, -d or -k`, 2);
    else found.url = word;
  }
  const url = URL.canParse(found.url) ? new URL(found.url) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new FatalError(`"${found.url}" is no URL; write http://HOST/PATH or https://HOST/PATH`, 2);
  const method = found.method === "" ? (found.body === undefined ? "GET" : "POST") : found.method;
  return { url, method, headers: found.headers, body: found.body, isInsecure: found.insecure };
}

/** @returns the status line of the response */
export function sendRequest({ url, method, headers, body, isInsecure }: RequestToSend, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const open = url.protocol === "https:" ? tlsRequest : plainRequest;
    const path = `${url.pathname}${url.search}`;
    const target = { host: "127.0.0.1", port, path, method, headers: { host: url.host, ...headers } };
    const tls = { servername: url.hostname, rejectUnauthorized: !isInsecure };
    const outgoing = open({ ...target, ...tls }, (response) => {
      response.resume();
      response.on("end", () => resolve(`${response.statusCode} ${response.statusMessage ?? ""}`.trim()));
      response.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
