/**
 * Authenticates the calls of ServiceCallout with the `auth` block of the service. A credential that has to be fetched
 * delays the call; one that cannot be had is a mistake of the configuration, which no failure mode overlooks.
 */
import { CallCredentials, Metadata } from "@grpc/grpc-js";
import { HeaderList } from "../../lib/header-list.ts";
import type { MaybePromise } from "../exchange/exchange.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { AuthCall, RequestAuth } from "../upstream/auth.ts";
import { sendSigned } from "../upstream/send-signed.ts";
import type { CallTarget } from "../upstream/upstream.ts";
import { CalloutError, type Caller, type CalloutAnswer, type CalloutRequest } from "./callout.ts";
import { failedCall } from "./http-call.ts";

type AuthTarget = Pick<CallTarget, "target" | "auth" | "signingScope">;

const EMPTY = Buffer.alloc(0);

/**
 * Places the credential among the headers.
 * @returns path and query of the call
 * @throws CalloutError
 */
export async function authenticateHttp(
  { auth, target, signingScope }: AuthTarget,
  caller: Caller,
  { path, headers }: Pick<CalloutRequest, "path" | "headers">,
): Promise<string> {
  if (auth === undefined) return path;
  try {
    return await auth.place({ caller, host: target.host, connection: target, signingScope }, headers, path);
  } catch (error) {
    throw error instanceof ProxyError ? failedCall(error) : error;
  }
}

/** Sends a request, signed where the service asks for that. @throws CalloutError, or what `send` throws */
export async function sendAuthenticated(
  { auth, target, signingScope }: AuthTarget,
  caller: Caller,
  { method, path, headers, body }: Omit<CalloutRequest, "authority">,
  send: () => Promise<CalloutAnswer>,
): Promise<CalloutAnswer> {
  const request = { method, path, headers, body: body ?? EMPTY };
  try {
    return await sendSigned(
      { auth, call: { caller, host: target.host, connection: target, signingScope }, request },
      send,
      ignore,
    );
  } catch (error) {
    throw error instanceof ProxyError && error.code === "credential_unavailable" ? failedCall(error) : error;
  }
}

/** Answers of callouts are whole. */
function ignore(): void {}

export interface GrpcAuth {
  readonly metadata: Metadata;
  /** Set where the credential is not there yet: the library waits for it before it sends the call. */
  readonly credentials: CallCredentials | undefined;
}

/** @throws CalloutError, ProxyError */
export function authenticateGrpc({ auth, target }: AuthTarget, caller: Caller): GrpcAuth {
  const metadata = new Metadata();
  if (auth === undefined) return { metadata, credentials: undefined };
  if (auth.sign !== undefined) throw new CalloutError("a gRPC call cannot be signed", { misconfigured: true });
  const headers = new HeaderList();
  const placed = placeIn(headers, auth, { caller, host: target.host, connection: target });
  if (!(placed instanceof Promise)) return { metadata: fill(metadata, headers), credentials: undefined };
  // The call may end before the library asks for the credential.
  placed.catch(() => undefined);
  return {
    metadata,
    credentials: CallCredentials.createFromMetadataGenerator((_options, answer) => {
      placed.then(
        () => answer(null, fill(new Metadata(), headers)),
        (error: unknown) => answer(error instanceof Error ? error : new Error(String(error))),
      );
    }),
  };
}

/** gRPC has no query parameters, so a credential for one is refused. */
function placeIn(headers: HeaderList, auth: RequestAuth, call: AuthCall): MaybePromise<string> {
  if (auth.writesQuery)
    throw new CalloutError("a gRPC call cannot carry its credential in a query parameter", { misconfigured: true });
  return auth.place(call, headers, "/");
}

function fill(metadata: Metadata, { raw }: HeaderList): Metadata {
  for (let at = 0; at < raw.length; at += 2) metadata.set(raw[at] as string, raw[at + 1] as string);
  return metadata;
}
