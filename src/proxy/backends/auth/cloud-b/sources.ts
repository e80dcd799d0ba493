/**
 * Fetches tokens of Microsoft Entra: for a client secret, for the federated token of a workload, and for a managed
 * identity. Without a configured source the environment decides; its first source that is there is used. No program of
 * a developer's machine is asked.
 */
import { readFile } from "node:fs/promises";
import type {
  CloudBCredential,
  CloudBManagedIdentity,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../lib/header-list.ts";
import type { FetchedToken } from "../../../tokens/token.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { Environment } from "../shared/ambient-hosts.ts";
import { readBearer, unusable } from "../shared/bearer-token.ts";
import type { CloudClient } from "../shared/cloud-client.ts";

interface SourceDeps {
  readonly client: CloudClient;
  readonly environment: Environment;
  readonly caller: AuthCaller;
}

const AUTHORITY = "https://login.microsoftonline.com";
const METADATA = "http://169.254.169.254";
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** @param resource the token is for @throws ProxyError credential_unavailable, CalloutError */
export function fetchToken(
  source: CloudBCredential["source"],
  resource: string,
  deps: SourceDeps,
): Promise<FetchedToken<string>> {
  switch (source.case) {
    case "secret": {
      const { tenantId, clientId, clientSecret } = source.value;
      return askEntra(
        tenantId,
        [
          ["client_id", clientId],
          ["client_secret", clientSecret],
        ],
        resource,
        deps,
      );
    }
    case "managedIdentity":
      return askManagedIdentity(source.value, resource, deps);
    case "workloadIdentity":
      return askForWorkload(resource, deps);
    case undefined:
      return askEnvironment(resource, deps);
  }
}

async function askEnvironment(resource: string, deps: SourceDeps): Promise<FetchedToken<string>> {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: id, AZURE_CLIENT_SECRET: secret } = deps.environment;
  if (tenant && id && secret)
    return askEntra(
      tenant,
      [
        ["client_id", id],
        ["client_secret", secret],
      ],
      resource,
      deps,
    );
  if (deps.environment["AZURE_FEDERATED_TOKEN_FILE"]) return askForWorkload(resource, deps);
  return askManagedIdentity({ clientId: id ?? "", objectId: "", resourceId: "" }, resource, deps);
}

/** The file is read anew for each call, because its token is renewed. */
async function askForWorkload(resource: string, deps: SourceDeps): Promise<FetchedToken<string>> {
  const { AZURE_TENANT_ID: tenant, AZURE_CLIENT_ID: id, AZURE_FEDERATED_TOKEN_FILE: file } = deps.environment;
  if (!tenant || !id || !file)
    throw unusable("a workload identity needs AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE");
  const token = await readFile(file, "utf8").catch(() => {
    throw unusable(`${file} cannot be read`);
  });
  const proof: Parameters<typeof askEntra>[1] = [
    ["client_id", id],
    ["client_assertion_type", ASSERTION_TYPE],
    ["client_assertion", token.trim()],
  ];
  return askEntra(tenant, proof, resource, deps);
}

async function askEntra(
  tenant: string,
  proof: readonly (readonly [string, string])[],
  resource: string,
  { client, environment, caller }: SourceDeps,
): Promise<FetchedToken<string>> {
  const authority = (environment["AZURE_AUTHORITY_HOST"] || AUTHORITY).replace(/\/$/, "");
  const form = [["grant_type", "client_credentials"], ["scope", `${resource}/.default`], ...proof];
  const answer = await client.send(
    {
      method: "POST",
      url: `${authority}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`,
      headers: new HeaderList(["content-type", "application/x-www-form-urlencoded", "accept", "application/json"]),
      body: new URLSearchParams(form.map(([name = "", value = ""]) => [name, value])).toString(),
    },
    caller,
  );
  return readBearer(answer, "the token service of cloud B");
}

async function askManagedIdentity(
  { clientId, objectId, resourceId }: Pick<CloudBManagedIdentity, "clientId" | "objectId" | "resourceId">,
  resource: string,
  { client, environment, caller }: SourceDeps,
): Promise<FetchedToken<string>> {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: proof } = environment;
  const isService = endpoint !== undefined && proof !== undefined;
  const base = environment["AZURE_POD_IDENTITY_AUTHORITY_HOST"] || METADATA;
  const url = new URL(isService ? endpoint : `${base.replace(/\/$/, "")}/metadata/identity/oauth2/token`);
  url.searchParams.set("api-version", isService ? "2019-08-01" : "2018-02-01");
  url.searchParams.set("resource", resource);
  // The two services spell the names of resources differently.
  const names = {
    client_id: clientId,
    [isService ? "principal_id" : "object_id"]: objectId,
    [isService ? "mi_res_id" : "msi_res_id"]: resourceId,
  };
  for (const [name, value] of Object.entries(names)) if (value !== "") url.searchParams.set(name, value);
  const headers = new HeaderList(isService ? ["x-identity-header", proof] : ["metadata", "true"]);
  return readBearer(await client.send({ url: url.href, headers }, caller), "the service of managed identities");
}
