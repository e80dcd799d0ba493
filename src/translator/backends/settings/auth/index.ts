/** Translates `auth` of a backend block: the table of kinds. `connection.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { BackendAuth as ApiAuth } from "../../../../../generated/types/backend-auth.ts";
import type { CredentialLocation } from "../../../../../generated/types/common.ts";
import { BackendAuthSchema, type BackendAuth } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";
import { unresolved, type AuthContext, type Kind, type TranslateKind } from "./auth-kind.ts";
import { translateCloudA } from "./cloud-a.ts";
import { translateCloudB } from "./cloud-b.ts";
import { translateCloudC } from "./cloud-c.ts";
import { translateCredentials } from "./credentials.ts";
import { translateJwtSign } from "./jwt-sign.ts";
import { translateKey, translateSecretRef } from "./key.ts";
import { translateCrossAppAccess } from "./oauth/cross-app-access.ts";
import { translateTokenExchange } from "./oauth/token-exchange.ts";
import { translatePassthrough } from "./passthrough.ts";
import { findPlaceFault } from "./writable.ts";

type KindTable = { readonly [K in keyof ApiAuth]?: TranslateKind<K> };

const KINDS: KindTable = {
  key: translateKey,
  secretRef: translateSecretRef,
  passthrough: translatePassthrough,
  cloudA: translateCloudA,
  cloudB: translateCloudB,
  cloudC: translateCloudC,
  jwtSign: translateJwtSign,
  oauthTokenExchange: translateTokenExchange,
  crossAppAccess: translateCrossAppAccess,
};

// Admission lets at most one kind pass.
const NAMES = Object.keys(KINDS) as readonly (keyof ApiAuth)[];

/** @returns undefined when the block asks for nothing */
export function translateAuth(auth: ApiAuth, context: SettingsContext, report: Report): BackendAuth | undefined {
  const places = placesOf(auth);
  warnOfQueries(places, report);
  const kind = checkPlaces(places, report) ?? translateKind(auth, context, report);
  if (auth.credentials === undefined) return kind === undefined ? undefined : create(BackendAuthSchema, { kind });
  const further = translateCredentials(auth.credentials, { ...context, report: within(report, "credentials") });
  if ("case" in further) return create(BackendAuthSchema, { kind: further });
  const credentials = [...further];
  return create(BackendAuthSchema, kind === undefined ? { credentials } : { kind, credentials });
}

/** A place that credentials are written to, below its path. */
type Place = readonly [path: string, location: CredentialLocation | undefined];

function placesOf({ location, jwtSign, oauthTokenExchange, credentials = [] }: ApiAuth): readonly Place[] {
  return [
    ["location", location],
    ["jwtSign.location", jwtSign?.location],
    ["oauthTokenExchange.location", oauthTokenExchange?.location],
    ...credentials.map((credential, at) => [`credentials[${at}].location`, credential.location] as const),
  ];
}

/** @returns the kind that replaces the whole block when a credential cannot be written to its place */
function checkPlaces(places: readonly Place[], report: Report): Kind | undefined {
  for (const [path, place] of places) {
    const fault = place && findPlaceFault(place);
    if (fault !== undefined) return unresolved(report, `${path}.${fault.path}`, fault.reason);
  }
  return undefined;
}

/** Queries are written to access logs and sent on in `Referer` fields (RFC 6750 §5.3), which headers are not. */
function warnOfQueries(places: readonly Place[], report: Report): void {
  for (const [path, { queryParameter } = {}] of places)
    if (queryParameter !== undefined)
      report(
        `${path}.queryParameter`,
        "a credential in a query is shown in logs of the servers on its way; use a header if the service takes one",
        "warning",
      );
}

function translateKind(auth: ApiAuth, context: SettingsContext, report: Report): Kind | undefined {
  for (const name of NAMES) {
    const spec = auth[name];
    if (spec === undefined) continue;
    // Name, value and translator belong together, because all three come from one member.
    const translate = KINDS[name] as (spec: unknown, auth: ApiAuth, context: AuthContext) => Kind | undefined;
    return translate(spec, auth, { ...context, report: within(report, name) });
  }
  return undefined;
}
