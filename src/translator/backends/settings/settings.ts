/**
 * The backend block of a GwBackend, a provider or a GwPolicy: one translator per member. What cannot be resolved is
 * reported and translated to its failing form; the caller decides whether to send it.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendFull } from "../../../../generated/types/backend-policies.ts";
import { BackendSettingsSchema, type BackendSettings } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Diagnostic } from "../../diagnostics.ts";
import type { ServiceReader } from "../../policies/shared/external-service.ts";
import type { SecretReader } from "../../references/secrets.ts";
import { translateAuth } from "./auth.ts";
import { translateHealth } from "./health.ts";
import { translateHttp } from "./http.ts";
import { translateSessionAffinity } from "./session-affinity.ts";
import { translateTcp } from "./tcp.ts";
import { translateTls } from "./tls.ts";
import { translateBackendTransformation } from "./transformation.ts";
import { translateTunnel } from "./tunnel.ts";

/** @param severity unset: as is usual in the place */
export type Report = (path: string, message: string, severity?: Diagnostic["severity"]) => void;

/** The members that are served here; every kind of block has them. */
export type ServedBlock = Pick<
  BackendFull,
  "tcp" | "tls" | "http" | "tunnel" | "auth" | "transformation" | "health" | "sessionAffinity"
>;

export interface SettingsContext {
  readonly secrets: SecretReader;
  /** Learns which Backends the block needs. */
  readonly services: ServiceReader;
}

/** @returns undefined when the block says nothing */
export function translateSettings(
  block: ServedBlock | undefined,
  { secrets, services }: SettingsContext,
  report: Report,
): BackendSettings | undefined {
  if (block === undefined) return undefined;
  const { tcp, tls, http, tunnel, auth, transformation, health, sessionAffinity } = block;
  const credential = auth === undefined ? undefined : translateAuth(auth, secrets, within(report, "auth"));
  const members = {
    ...(tcp === undefined ? {} : { tcp: translateTcp(tcp) }),
    ...(tls === undefined ? {} : { tls: translateTls(tls, secrets, within(report, "tls")) }),
    ...(http === undefined ? {} : { http: translateHttp(http) }),
    ...(tunnel === undefined ? {} : { tunnel: translateTunnel(tunnel, services, within(report, "tunnel")) }),
    ...(credential === undefined ? {} : { auth: credential }),
    ...(transformation === undefined
      ? {}
      : { transformation: translateBackendTransformation(transformation, within(report, "transformation")) }),
    ...(health === undefined ? {} : { health: translateHealth(health, within(report, "health")) }),
    ...(sessionAffinity === undefined
      ? {}
      : { sessionAffinity: translateSessionAffinity(sessionAffinity, within(report, "sessionAffinity")) }),
  };
  return Object.keys(members).length === 0 ? undefined : create(BackendSettingsSchema, members);
}

export function within(report: Report, prefix: string): Report {
  return (path, message, severity) => report(path === "" ? prefix : `${prefix}.${path}`, message, severity);
}
