/**
 * Translates the members of a backend block that decide how connections are made and which credential is shown.
 * `settings.ts` uses it for every block, and guard services have nothing more.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BackendSimple } from "../../../../generated/types/backend-policies.ts";
import type { BackendSettingsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../shared/report.ts";
import { translateAuth } from "./auth/index.ts";
import type { SettingsContext } from "./context.ts";
import { translateHttp } from "./http.ts";
import { translateTcp } from "./tcp.ts";
import { translateTls } from "./tls.ts";
import { translateTunnel } from "./tunnel.ts";

export type ConnectionSettings = Pick<
  MessageInitShape<typeof BackendSettingsSchema>,
  "tcp" | "tls" | "http" | "tunnel" | "auth"
>;

/** @returns only the members that the block sets */
export function translateConnection(
  { tcp, tls, http, tunnel, auth }: BackendSimple,
  context: SettingsContext,
  report: Report,
): ConnectionSettings {
  const { secrets, services } = context;
  const identity = auth === undefined ? undefined : translateAuth(auth, context, within(report, "auth"));
  return {
    ...(tcp === undefined ? {} : { tcp: translateTcp(tcp) }),
    ...(tls === undefined ? {} : { tls: translateTls(tls, secrets, within(report, "tls")) }),
    ...(http === undefined ? {} : { http: translateHttp(http) }),
    ...(tunnel === undefined ? {} : { tunnel: translateTunnel(tunnel, services, within(report, "tunnel")) }),
    ...(identity === undefined ? {} : { auth: identity }),
  };
}
