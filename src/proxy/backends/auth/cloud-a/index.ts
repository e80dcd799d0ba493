/**
 * The kind `cloudA`: requests are signed with Signature Version 4, each attempt anew. Keys of a Secret and of environment
 * variables sign at once; others are fetched and kept.
 */
import type { CloudACredential } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { MaybePromise } from "../../../exchange/exchange.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import type { AuthCall, AuthCaller } from "../../../upstream/auth.ts";
import type { AuthKind, BlockDeps } from "../auth-kind.ts";
import { checkAmbientHost } from "../shared/ambient-hosts.ts";
import { CLOUD_TIMEOUT_MS } from "../shared/cloud-client.ts";
import { compileRole } from "./role.ts";
import { ServiceClocks } from "./service-clocks.ts";
import { signRequest, type AwsCredentials } from "./sigv4.ts";
import { environmentKeys, environmentRegion, fetchIdentity, fetchRegion } from "./sources.ts";
import { callSts } from "./sts.ts";

const DEFAULT_SERVICE = "bedrock";
const MARGIN_MS = 60_000;
const MAX_ROLES = 8_192;
/** A region does not change while the machine lives; it is asked for again after this time all the same. */
const REGION_MS = 86_400_000;

export const cloudA: AuthKind<"cloudA"> = {
  compile(credential, deps) {
    const clocks = new ServiceClocks();
    const keysOf = compileKeys(credential, deps, clocks);
    const ambientRegion = compileRegion(deps);
    return {
      sign(call, request) {
        const { caller, host, signingScope } = call;
        const service = credential.service || signingScope?.service || DEFAULT_SERVICE;
        const known = credential.region || signingScope?.region || environmentRegion(deps.environment);
        const region = known ?? ambientRegion(caller);
        const finish = (place: string, keys: AwsCredentials): void =>
          signRequest(request, keys, { region: checkRegion(place), service }, clocks.nowMs(host));
        if (typeof region !== "string") return region.then(async (found) => finish(found, await keysOf(call, found)));
        const keys = keysOf(call, region);
        return keys instanceof Promise ? keys.then((ready) => finish(region, ready)) : finish(region, keys);
      },
      correctClock: (host, date) => clocks.correct(host, date),
    };
  },
};

type FindKeys = (call: AuthCall, region: string) => MaybePromise<AwsCredentials>;

function compileKeys({ keys, role }: CloudACredential, deps: BlockDeps, clocks: ServiceClocks): FindKeys {
  if (keys !== undefined) return () => keys;
  const { environment, cloud: client } = deps;
  const options = { kind: "cloudA", place: deps.place, marginMs: MARGIN_MS, timeoutMs: CLOUD_TIMEOUT_MS };
  const identities = deps.tokens.cache<AwsCredentials>({ ...options, block: `${deps.block}/identity`, maxEntries: 16 });
  const identityOf = (caller: AuthCaller, region: string): MaybePromise<AwsCredentials> =>
    environmentKeys(environment) ??
    identities.get(region, caller, () => fetchIdentity({ client, environment }, region, caller));
  if (role === undefined)
    return (call, region) => {
      checkAmbientHost("cloudA", call, environment);
      return identityOf(call.caller, region);
    };
  const sessionOf = compileRole(role, deps);
  const roles = deps.tokens.cache<AwsCredentials>({ ...options, block: `${deps.block}/role`, maxEntries: MAX_ROLES });
  return (call, region) => {
    checkAmbientHost("cloudA", call, environment);
    const { caller } = call;
    const { key, parameters } = sessionOf(caller);
    return roles.get(`${key} ${region}`, caller, async () => {
      // A request that is gone must not end what others wait for.
      const own = { ...ownTrace(caller), onAbort: (): void => undefined };
      const signer = { keys: await identityOf(own, region), clocks };
      return callSts(client, parameters, signer, { region, environment, caller: own });
    });
  };
}

function ownTrace({ trace, cdnLoop }: AuthCaller): Pick<AuthCaller, "trace" | "cdnLoop"> {
  return { trace, cdnLoop };
}

function compileRegion({
  tokens,
  place,
  block,
  cloud: client,
  environment,
}: BlockDeps): (caller: AuthCaller) => MaybePromise<string> {
  const cache = tokens.cache<string>({
    kind: "cloudA",
    place,
    block: `${block}/region`,
    marginMs: MARGIN_MS,
    maxEntries: 1,
    timeoutMs: CLOUD_TIMEOUT_MS,
  });
  return (caller) =>
    cache.get("", caller, async () => {
      const value = await fetchRegion({ client, environment }, caller);
      const fetchedAtMs = monotonicMs();
      return { value: checkRegion(value), fetchedAtMs, expiresAtMs: fetchedAtMs + REGION_MS };
    });
}

/** A slash would end the scope of a signature, and a region is part of host names. @throws ProxyError */
function checkRegion(region: string): string {
  if (/^[a-z0-9-]{1,64}$/.test(region)) return region;
  throw new ProxyError("credential_unavailable", { detail: "the region is not known, or is not the name of one" });
}
