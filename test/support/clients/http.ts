/** Sends one HTTP request for a test, without additions or redirects, and returns the whole answer. */
import assert from "node:assert/strict";
import { request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** The client's own address; all of 127.0.0.0/8 is loopback. */
  readonly from?: string;
}

/** Parses the body of an answer as JSON; another body fails the test by an assertion. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return assert.fail(`the body is not JSON: ${JSON.stringify(body)}`);
  }
}

/** @param url URL of the form http://127.0.0.1:port/path */
export function call(url: string, { method = "GET", headers = {}, body, from }: Call = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method, headers, agent: false, ...(from === undefined ? {} : { localAddress: from }) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
