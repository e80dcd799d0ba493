/**
 * A strict OAuth 2.1 authorization server that consents by itself: metadata, dynamic registration, codes with PKCE, and
 * tokens that it signs. It stands for a product that follows the standards, for Auth0 (audience as a parameter) and for
 * Keycloak (metadata of OpenID Connect only, registration without CORS).
 */
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createIssuer, keySet, type Issuer } from "../fixtures/tokens.ts";
import type { ProofContext } from "../proofs/prove.ts";

export type Product = "standard" | "auth0" | "keycloak";

export interface OAuthIssuer {
  /** Its name as tokens have it, with the path of a tenant. */
  readonly issuer: string;
  readonly port: number;
  readonly signer: Issuer;
  /** The JWKS that it publishes. */
  keys: string;
  /** "METHOD path" of its requests, oldest first. */
  readonly asked: readonly string[];
  /** Bodies of token requests and registrations, oldest first. */
  readonly bodies: readonly string[];
  /** While set, every request is answered with this status, or by this function. */
  failure: number | ((response: ServerResponse) => void) | undefined;
  /** Members that its metadata has besides, or undefined for those that it lacks. */
  metadata: Readonly<Record<string, unknown>>;
}

interface Code {
  readonly clientId: string;
  readonly challenge: string;
  readonly audience: string | undefined;
}

const REALM = "/realms/one";

/** @param secret of the client "desk", which has to authenticate with it */
export async function startOAuthIssuer(
  context: ProofContext,
  product: Product = "standard",
  secret = "",
): Promise<OAuthIssuer> {
  const asked: string[] = [];
  const bodies: string[] = [];
  const codes = new Map<string, Code>();
  const clients = new Set(["desk"]);
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  const base = `http://127.0.0.1:${port}`;
  const issuer = base + REALM;
  const signer = await createIssuer(issuer);
  const state: { -readonly [Name in keyof OAuthIssuer]: OAuthIssuer[Name] } = {
    issuer,
    port,
    signer,
    keys: keySet(signer.jwk),
    asked,
    bodies,
    failure: undefined,
    metadata: {},
  };

  function describe(): object {
    return {
      issuer,
      authorization_endpoint: `${base}/authorize`,
      token_endpoint: `${base}/token`,
      registration_endpoint: `${issuer}/clients-registrations/openid-connect`,
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
      client_id_metadata_document_supported: true,
      ...state.metadata,
    };
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", base);
    asked.push(`${request.method} ${url.pathname}`);
    const body = await text(request);
    if (typeof state.failure === "function") return state.failure(response);
    if (state.failure !== undefined) return send(response, state.failure, { error: "down" });
    const well = product === "keycloak" ? `${REALM}/.well-known/openid-configuration` : wellKnown();
    switch (`${request.method} ${url.pathname}`) {
      case `GET ${well}`:
        return send(response, 200, describe());
      case `GET ${REALM}/keys`:
        response.writeHead(200, { "content-type": "application/json" }).end(state.keys);
        return undefined;
      case `POST ${REALM}/clients-registrations/openid-connect`:
        bodies.push(body);
        return register(request, body, response);
      case "GET /authorize":
        return authorize(url.searchParams, response);
      case "POST /token":
        bodies.push(body);
        return issue(new URLSearchParams(body), response);
      default:
        return send(response, 404, { error: "not_found" });
    }
  }

  function register(request: IncomingMessage, body: string, response: ServerResponse): void {
    if (request.headers["content-type"] !== "application/json") return send(response, 415, { error: "type" });
    const client_id = `client-${clients.size}`;
    clients.add(client_id);
    // The cast is checked by the client under test, which reads the answer with a schema.
    send(response, 201, { ...(JSON.parse(body) as object), client_id, client_id_issued_at: 1 });
  }

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const clientId = query.get("client_id") ?? "";
    const challenge = query.get("code_challenge") ?? "";
    const redirect = query.get("redirect_uri") ?? "";
    if (!clients.has(clientId) || challenge === "" || query.get("code_challenge_method") !== "S256")
      return send(response, 400, { error: "invalid_request" });
    const code = randomUUID();
    const audience = product === "auth0" ? query.get("audience") : query.get("resource");
    codes.set(code, { clientId, challenge, audience: audience ?? undefined });
    const target = new URL(redirect);
    target.searchParams.set("code", code);
    target.searchParams.set("state", query.get("state") ?? "");
    response.writeHead(302, { location: target.href }).end();
  }

  async function issue(form: URLSearchParams, response: ServerResponse): Promise<void> {
    const code = codes.get(form.get("code") ?? "");
    const verifier = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (form.get("client_id") === "desk" && (form.get("client_secret") ?? "") !== secret)
      return send(response, 401, { error: "invalid_client" });
    if (form.get("grant_type") !== "authorization_code" || code === undefined || code.challenge !== verifier)
      return send(response, 400, { error: "invalid_grant" });
    if (code.clientId !== form.get("client_id")) return send(response, 400, { error: "invalid_grant" });
    codes.delete(form.get("code") ?? "");
    const claims = code.audience === undefined ? {} : { aud: code.audience };
    const access_token = await signer.token(claims);
    return send(response, 200, { access_token, token_type: "Bearer", expires_in: 3600 });
  }

  return state;
}

function wellKnown(): string {
  return `/.well-known/oauth-authorization-server${REALM}`;
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}
