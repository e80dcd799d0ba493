/** Tests of `auth.cloudA`: the keys of its sources, and a gateway in front of a server that verifies signatures. */
import { documents, GATEWAY, route, startGateway, type TestGateway } from "./gateway.ts";
import { INLINE_AUTH, type AuthPlace } from "./backend-auth.ts";
import type { ProofContext } from "../proofs/prove.ts";
import type { ExpectedKeys } from "../servers/llm/aws-signature.ts";
import type { SignedUpstream } from "../servers/signed-upstream.ts";

type SessionKeys = Pick<ExpectedKeys, "accessKeyId" | "secretAccessKey"> & { readonly sessionToken: string };
type Variables = Readonly<Record<string, string | undefined>>;

export const SCOPE: Pick<ExpectedKeys, "region" | "service"> = { region: "eu-west-1", service: "execute-api" };
export const SCOPED: string = "region: eu-west-1, serviceName: execute-api";
export const KEYS: SessionKeys = {
  accessKeyId: "AKIDSTATIC",
  secretAccessKey: "secret-of-static",
  sessionToken: "session-of-static",
};
export const FETCHED: SessionKeys = {
  accessKeyId: "ASIAFETCHED",
  secretAccessKey: "secret-of-fetched",
  sessionToken: "session-of-fetched",
};
export const ROLE: string = "arn:aws:iam::123456789012:role/reader";
export const ENTRIES: Readonly<Record<string, string>> = {
  accessKey: KEYS.accessKeyId,
  secretKey: KEYS.secretAccessKey,
  sessionToken: KEYS.sessionToken,
};

/** No source of the machine that runs the test. */
export const EMPTY: Variables = {
  AWS_ACCESS_KEY_ID: undefined,
  AWS_SECRET_ACCESS_KEY: undefined,
  AWS_SESSION_TOKEN: undefined,
  AWS_PROFILE: undefined,
  AWS_REGION: undefined,
  AWS_DEFAULT_REGION: undefined,
  AWS_SHARED_CREDENTIALS_FILE: "/nonexistent",
  AWS_CONFIG_FILE: "/nonexistent",
  AWS_EC2_METADATA_DISABLED: "true",
  GWPROXY_AMBIENT_IDENTITY_HOSTS: "*",
};
export const ENVIRONMENT_KEYS: Variables = {
  AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  AWS_SESSION_TOKEN: KEYS.sessionToken,
};

/** @param auth members of `cloudA` as YAML flow */
export async function serveSigned(
  context: ProofContext,
  { port }: SignedUpstream,
  auth: string,
  { place = INLINE_AUTH, more = [] }: { readonly place?: AuthPlace; readonly more?: readonly string[] } = {},
): Promise<TestGateway> {
  const objects = place.objects(port, `{cloudA: {${auth}}}`);
  return startGateway(context, documents(GATEWAY, objects, route("web", "web"), ...more));
}
