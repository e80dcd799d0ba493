/**
 * Calls metadata servers and token services of clouds. Kinds that fetch from a cloud use it. A redirect is an answer
 * like any other, which no caller takes; bodies are bounded by the callout, and times by five seconds.
 */
import { create } from "@bufbuild/protobuf";
import { BackendTlsSchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../lib/header-list.ts";
import { RecentMap } from "../../../../lib/recent-map.ts";
import type { Callout, CalloutAnswer, Caller } from "../../../callouts/callout.ts";
import type { Callouts } from "../../../callouts/callouts.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import { connectionOf, PLAIN } from "../../../upstream/dial/connection-settings.ts";

export const CLOUD_TIMEOUT_MS = 5_000;
const MAX_ORIGINS = 256;

export interface CloudRequest {
  readonly method?: string;
  readonly url: string;
  readonly headers?: HeaderList;
  readonly body?: string;
}

export class CloudClient {
  readonly #callouts: () => Pick<Callouts, "openTarget">;
  readonly #byOrigin = new RecentMap<string, Callout>(MAX_ORIGINS);

  constructor(callouts: () => Pick<Callouts, "openTarget">) {
    this.#callouts = callouts;
  }

  /** @throws CalloutError, ProxyError credential_unavailable for a text that is not a URL */
  async send(
    { method = "GET", url, headers = new HeaderList(), body }: CloudRequest,
    caller: AuthCaller,
  ): Promise<CalloutAnswer> {
    const { origin, pathname, search } = parseUrl(url);
    const request = {
      method,
      path: pathname + search,
      authority: undefined,
      headers,
      body: body === undefined ? null : Buffer.from(body),
    };
    return this.#open(origin).http(request, ownCaller(caller));
  }

  #open(origin: string): Callout {
    let callout = this.#byOrigin.get(origin);
    if (callout !== undefined) return callout;
    const { protocol, hostname, host, port } = new URL(origin);
    const isTls = protocol === "https:";
    const connection = isTls ? connectionOf({ tls: create(BackendTlsSchema) }) : PLAIN;
    const target = {
      ...connection,
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      unixPath: "",
      owner: "credential",
    };
    const found = { target, authority: host, auth: undefined, http: undefined, begin: () => () => undefined };
    callout = this.#callouts().openTarget(found, "Credential", CLOUD_TIMEOUT_MS);
    this.#byOrigin.set(origin, callout);
    return callout;
  }
}

/** Others wait for the same answer, so the call goes on when the request that caused it is gone. */
function ownCaller({ trace, cdnLoop }: AuthCaller): Caller {
  return { onAbort: () => undefined, trace, cdnLoop };
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw new ProxyError("credential_unavailable", { detail: "a service of the cloud has no http or https URL" });
  return url;
}
