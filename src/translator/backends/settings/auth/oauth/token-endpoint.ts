/** Translates a token endpoint, and how the gateway names itself there. */
import { createPrivateKey, hash, X509Certificate } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type {
  BackendAuth,
  CrossAppEndpoint,
  OAuthClientAuth,
  PrivateKeyJwt,
} from "../../../../../../generated/types/backend-auth.ts";
import {
  OAuthClientMethod,
  OAuthClientSchema,
  TokenEndpointSchema,
  type OAuthClient,
  type TokenEndpoint,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { certificatesIn } from "../../../../references/pem.ts";
import type { SecretReader } from "../../../../references/secrets.ts";
import { within, type Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import { readSigningKey } from "../signing-key.ts";

type Endpoint = Pick<CrossAppEndpoint, "backendRef" | "url" | "path"> & { readonly clientAuth?: OAuthClientAuth };

/** Explains why a member cannot be used; `path` is relative to the block. */
export interface FieldError {
  readonly path: string;
  readonly error: string;
}

const BASIC = "ClientSecretBasic";
const METHODS = {
  ClientSecretBasic: OAuthClientMethod.OAUTH_CLIENT_METHOD_BASIC,
  ClientSecretPost: OAuthClientMethod.OAUTH_CLIENT_METHOD_POST,
  PrivateKeyJwt: OAuthClientMethod.OAUTH_CLIENT_METHOD_ASSERTION,
} as const;

/** @param report takes paths relative to the block @returns the endpoint, or an error, which has been reported */
export function translateEndpoint(
  { clientAuth, path = "", ...reference }: Endpoint,
  { services, secrets }: SettingsContext,
  report: Report,
): TokenEndpoint | FieldError {
  let error: string | undefined;
  const service = services.resolve(reference, "", (at, message, severity) => {
    error = message;
    report(at, message, severity);
  });
  if (error !== undefined) return { path: "", error };
  const chained = findChain(services.authOf(reference), clientAuth);
  if (chained !== undefined) {
    report(chained.path, chained.error);
    return chained;
  }
  const endpoint = create(TokenEndpointSchema, { service, path });
  if (clientAuth === undefined) return endpoint;
  const reportClient = within(report, "clientAuth");
  const client = translateClient(clientAuth, secrets, reportClient);
  if ("error" in client) {
    reportClient(client.path, client.error);
    return client;
  }
  endpoint.client = client;
  return endpoint;
}

/** Decides whether calls to a token endpoint would need a token first, or would carry two credentials in one header. */
function findChain(auth: BackendAuth | undefined, clientAuth: OAuthClientAuth | undefined): FieldError | undefined {
  if (auth?.oauthTokenExchange !== undefined || auth?.crossAppAccess !== undefined)
    return { path: "backendRef", error: "the auth of this backend exchanges tokens itself; exchanges do not chain" };
  if (auth === undefined || clientAuth === undefined || (clientAuth.method ?? BASIC) !== BASIC) return undefined;
  const error = `the backend of the token endpoint has auth of its own, which takes the place of ${BASIC}; use another method`;
  return { path: "clientAuth.method", error };
}

function translateClient(
  { clientId, method = BASIC, secretRef, privateKeyJwt }: OAuthClientAuth,
  secrets: SecretReader,
  report: Report,
): OAuthClient | FieldError {
  const client = create(OAuthClientSchema, { id: clientId, method: METHODS[method] });
  if (privateKeyJwt !== undefined)
    return translateAssertion(privateKeyJwt, client, secrets, within(report, "privateKeyJwt"));
  if (secretRef === undefined) return client;
  const { key = "clientSecret", ...ref } = secretRef;
  const found = secrets.entry(ref, key);
  if ("error" in found) return { path: "secretRef", error: found.error };
  client.secret = found.value;
  return client;
}

function translateAssertion(
  { signingKeyRef, alg, kid, assertionAudience, certificateRef, certificateHeader }: PrivateKeyJwt,
  client: OAuthClient,
  secrets: SecretReader,
  report: Report,
): OAuthClient | FieldError {
  const key = readSigningKey(signingKeyRef, { alg, kid }, secrets);
  // Looked up also where the key is missing, so that no field counts as one that is not served.
  const chain = certificateRef === undefined ? [] : readChain(certificateRef, secrets);
  if ("error" in key) return { path: "privateKeyJwt.signingKeyRef", error: key.error };
  Object.assign(client, { key, assertionAudience });
  if ("error" in chain) return { path: "privateKeyJwt.certificateRef", error: chain.error };
  const [leaf] = chain;
  if (leaf === undefined) return client;
  if (!leaf.checkPrivateKey(createPrivateKey(key.privateKeyPem)))
    report("certificateRef", "the certificate is not that of the signing key; servers will refuse it", "warning");
  const header =
    certificateHeader === "x5c"
      ? { x5c: chain.map(({ raw }) => raw.toString("base64")) }
      : { "x5t#S256": hash("sha256", leaf.raw, "base64url") };
  client.assertionHeaderJson = JSON.stringify(header);
  return client;
}

/** @returns one certificate at least, the leaf first, or what is wrong */
function readChain(
  { key: entry = "certificate", ...ref }: NonNullable<PrivateKeyJwt["certificateRef"]>,
  secrets: SecretReader,
): readonly X509Certificate[] | { readonly error: string } {
  const found = secrets.entry(ref, entry);
  if ("error" in found) return found;
  const chain = parseChain(found.value);
  return chain.length > 0 ? chain : { error: `entry ${entry} of Secret ${ref.name} holds no certificate` };
}

/** Returns no certificate when one of them cannot be read. */
function parseChain(text: string): X509Certificate[] {
  try {
    return certificatesIn(text)
      .split(/(?<=-----END CERTIFICATE-----)\s*/)
      .filter((pem) => pem !== "")
      .map((pem) => new X509Certificate(pem));
  } catch {
    return []; // the caller reports it
  }
}
