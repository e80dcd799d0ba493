/**
 * Opens the services that prompt guards call, and endpoint pickers: a backend of the configuration, or the public host
 * of a vendor with connection settings of its own. The registry gives them to its backends.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  BackendTlsSchema,
  VerifyMode,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Callouts } from "../callouts/callouts.ts";
import type { BackendDeps } from "./handler.ts";

/** Limit of a call, where the settings of the service name none. */
const TIMEOUT_MS = 10_000;
const HTTPS_PORT = 443;
/** Endpoint pickers make a certificate of their own at each start, which nothing could verify. */
const UNVERIFIED = create(BackendTlsSchema, { verify: VerifyMode.NONE });

/** @param callouts is read when a service is opened, because callouts are created after the registry */
export function createGuardServices(
  callouts: () => Pick<Callouts, "open" | "openTarget">,
  { owner, auth: compile, connection: connect }: Pick<BackendDeps, "owner" | "auth" | "connection">,
): Pick<BackendDeps, "callout" | "pickerCallout" | "hostCallout"> {
  return {
    callout: (service, subtype = "Guardrail", timeoutMs = TIMEOUT_MS) => callouts().open(service, subtype, timeoutMs),
    pickerCallout: (service, unverifiedTls) =>
      callouts().open(service, "EndpointPicker", TIMEOUT_MS, unverifiedTls ? UNVERIFIED : undefined),
    hostCallout(host, settings = create(BackendSettingsSchema), { auth: defaultAuth, signingScope } = {}) {
      const { tls = create(BackendTlsSchema), auth = defaultAuth, http } = settings;
      const target = { ...connect({ ...settings, tls }), host, port: HTTPS_PORT, unixPath: "", owner };
      const begin = (): (() => void) => () => undefined;
      const found = { target, authority: host, auth: compile(auth), signingScope, http, begin };
      return callouts().openTarget(found, "Guardrail", TIMEOUT_MS);
    },
  };
}
