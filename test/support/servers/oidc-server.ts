/** A real provider of OpenID Connect, the package oidc-provider, on loopback. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import type { Provider } from "oidc-provider";
import { call } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface OidcServer {
  readonly issuer: string;
  /** Sets the provider that answers from now on. */
  use(provider: Provider): void;
  /** Returns what a client gets for the form. @param client "id:secret", each encoded as in a form */
  token(client: string, form: Readonly<Record<string, string>>): Promise<string>;
}

export async function startOidcServer(context: ProofContext): Promise<OidcServer> {
  let handle: RequestListener = (_request, response) => response.writeHead(503).end();
  const server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server's address is one
  return {
    issuer,
    use(provider) {
      handle = provider.callback();
    },
    async token(client, form) {
      const basic = Buffer.from(client).toString("base64");
      const headers = { authorization: `Basic ${basic}`, "content-type": "application/x-www-form-urlencoded" };
      const body = new URLSearchParams(form).toString();
      const answer = await call(`${issuer}/token`, { method: "POST", headers, body });
      assert.equal(answer.status, 200, answer.body);
      return (JSON.parse(answer.body) as { access_token: string }).access_token; // as RFC 6749 §5.1 says
    },
  };
}

/** Returns a new private key. */
export async function createPrivateJwk(alg: string, kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg, use: "sig" };
}
