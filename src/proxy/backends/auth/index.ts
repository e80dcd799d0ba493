/**
 * Compiles `auth` of a backend: the table of kinds, and the credentials beside them. The registry calls it for every
 * backend, provider and guard service.
 */
import { hash } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  type BackendAuth,
  type CredentialLocation,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { PlaceCredential, RequestAuth } from "../../upstream/auth.ts";
import type { AuthDeps, AuthKind, BlockDeps, CompiledKind, KindCase } from "./auth-kind.ts";
import { cloudA } from "./cloud-a/index.ts";
import { cloudB } from "./cloud-b/index.ts";
import { cloudC } from "./cloud-c/index.ts";
import { jwtSign } from "./jwt-sign.ts";
import { key } from "./key.ts";
import { CloudClient } from "./shared/cloud-client.ts";
import { placeCredential } from "./shared/place-credential.ts";
import { crossAppAccess } from "./oauth/cross-app-access.ts";
import { oauthTokenExchange } from "./oauth/token-exchange.ts";
import { passthrough } from "./passthrough.ts";
import { unresolved } from "./unresolved.ts";

const KINDS: { readonly [K in KindCase]: AuthKind<K> } = {
  key,
  passthrough,
  cloudA,
  cloudB,
  cloudC,
  jwtSign,
  oauthTokenExchange,
  crossAppAccess,
  unresolved,
};

/** Where a block stands that no user wrote: the default of a provider or of a guard. */
const DEFAULT_PLACE = "default";

export class AuthCompiler {
  readonly #deps: AuthDeps;
  readonly #cloud: CloudClient;
  readonly #compiled = new WeakMap<BackendAuth, RequestAuth>();
  readonly #places = new WeakMap<BackendAuth, string>();

  constructor(deps: AuthDeps) {
    this.#deps = deps;
    this.#cloud = new CloudClient(deps.callouts);
  }

  /** Notes the object and the field of a block, for reports. */
  locate(message: BackendAuth | undefined, place: string): void {
    if (message !== undefined && !this.#places.has(message)) this.#places.set(message, place);
  }

  /** Returns the same object for the same block, so that all backends that it governs share what is fetched for it. */
  compile(message: BackendAuth | undefined): RequestAuth | undefined {
    if (message === undefined) return undefined;
    let auth = this.#compiled.get(message);
    if (auth !== undefined) return auth;
    const place = this.#places.get(message) ?? DEFAULT_PLACE;
    const block = hash("sha256", Buffer.concat([Buffer.from(`${place}\n`), toBinary(BackendAuthSchema, message)]));
    auth = compileBlock(message, { ...this.#deps, cloud: this.#cloud, place, block });
    this.#compiled.set(message, auth);
    return auth;
  }
}

function compileBlock(message: BackendAuth, deps: BlockDeps): RequestAuth {
  const { place = placeNothing, sign, correctClock, checkDestination } = compileKind(message.kind, deps);
  const locations = locationsOf(message);
  return {
    message,
    place: withCredentials(place, message),
    sign,
    correctClock,
    checkDestination,
    writesQuery: locations.some(({ location }) => location.case === "queryParameter"),
    chosenHeader: chosenHeaderOf(message),
  };
}

function compileKind(kind: BackendAuth["kind"], deps: BlockDeps): CompiledKind {
  if (kind.case === undefined) return {};
  // Case and value belong together, because both come from one message.
  const entry = KINDS[kind.case] as AuthKind<KindCase>;
  return entry.compile(kind.value, deps);
}

const placeNothing: PlaceCredential = (_call, _headers, path) => path;

/** Writes the further credentials after that of the kind. */
function withCredentials(place: PlaceCredential, { credentials }: BackendAuth): PlaceCredential {
  if (credentials.length === 0) return place;
  return (call, headers, path) => {
    const further = (placed: string): string =>
      credentials.reduce((at, credential) => placeCredential(credential, headers, at), placed);
    const placed = place(call, headers, path);
    return placed instanceof Promise ? placed.then(further) : further(placed);
  };
}

function locationsOf({ kind, credentials }: BackendAuth): CredentialLocation[] {
  return [chosenLocation(kind), ...credentials.map(({ location }) => location)].filter(
    (location) => location !== undefined,
  );
}

/** Returns the lower-case names of the header fields that credentials are written to. */
export function credentialFields({ kind, credentials }: BackendAuth): ReadonlySet<string> {
  const own = kind.value !== undefined && "location" in kind.value ? kind.value.location : undefined;
  const places = [own, ...credentials.map(({ location }) => location)];
  return new Set(
    places.flatMap((place) => {
      if (place === undefined) return [];
      return place.location.case === "cookie" ? "cookie" : headerOf(place);
    }),
  );
}

function chosenHeaderOf({ kind, credentials }: BackendAuth): string | undefined {
  const location = chosenLocation(kind);
  if (location !== undefined) return headerOf(location);
  const headers = credentials.map((credential) => credential.location && headerOf(credential.location));
  return headers.find((name) => name === "authorization");
}

function chosenLocation(kind: BackendAuth["kind"]): CredentialLocation | undefined {
  return kind.case === "key" || kind.case === "passthrough" ? kind.value.location : undefined;
}

/** Returns the lower-case name of the header; "" for another place. */
function headerOf({ location }: CredentialLocation): string {
  return location.case === "header" ? location.value.name.toLowerCase() : "";
}
