/**
 * Merges the `frontend` settings of the policies of each Bind and caches the compiled result; Configuration owns one.
 * For each member, the policy for the port wins over the one for the Gateway, and the older policy wins within a level
 * (GEP-713). The rules of networkAuthorization are collected from all of them.
 */
import { FrontendSettingsSchema, type FrontendSettings } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../cel/scope.ts";
import { checkTls, compileFrontend, type Frontend } from "./frontend.ts";
import type { Env } from "./peer.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { checkLabels } from "../observability/labels.ts";
import { compileRules } from "../policies/shared/authorization-rules.ts";
import type { Exporters } from "../observability/exporters.ts";
import { compileReports } from "../observability/observability.ts";
import type { ReportDeps } from "../observability/report-deps.ts";

type Expressions = Pick<PolicySet, "expression">;

/** Members that come whole from the most specific policy that sets them; networkAuthorization is merged instead. */
type Exclusive = Exclude<Extract<keyof FrontendSettings, string>, `$${string}` | "networkAuthorization">;

/** Names of settings of which the rules of all policies count. */
export const COLLECTED_FRONTEND: ReadonlySet<string> = new Set(["networkAuthorization"]);

const MEMBERS = FrontendSettingsSchema.fields.map(
  ({ localName }) => localName as Exclude<keyof FrontendSettings, `$${string}`>,
);

/** Returns the names, as users write them, of the members that are set; each is merged by itself. */
export function frontendNames(settings: FrontendSettings | undefined): string[] {
  if (settings === undefined) return [];
  const names = MEMBERS.filter((name) => settings[name] !== undefined);
  return names.map((name) => (name === "keepalive" ? "tcp.keepalive" : name));
}

/** @throws ConfigError when no connection could be accepted with these settings */
export function checkFrontend(settings: FrontendSettings | undefined, policies: Expressions): void {
  checkTls(settings?.tls);
  checkLabels(settings?.metrics);
  compileRules(settings?.networkAuthorization?.rules ?? [], (source) => policies.expression(source, "connection"));
}

interface Made {
  /** Version of the set at which this entry was last confirmed. */
  readonly version: number;
  /** The settings that the frontend was compiled from, compared by identity. */
  readonly from: readonly FrontendSettings[];
  readonly frontend: Frontend;
}

export class FrontendSet {
  readonly #policies: Expressions & Pick<PolicySet, "at">;
  readonly #reports: Pick<ReportDeps, "exporters" | "random">;
  readonly #podName: string;
  readonly #trustedProxies: readonly string[];
  readonly #made = new Map<string, Made>();
  #version = 0;

  /** @param options `trustedProxies` applies where no policy names others */
  constructor(options: {
    readonly policies: Expressions & Pick<PolicySet, "at">;
    readonly exporters: Exporters;
    readonly random: () => number;
    readonly podName: string;
    readonly trustedProxies: readonly string[];
  }) {
    this.#policies = options.policies;
    this.#reports = options;
    this.#podName = options.podName;
    this.#trustedProxies = options.trustedProxies;
  }

  /**
   * Returns the same object until one of the Bind's own policies changes: the protocol servers compare by identity to
   * decide whether new connections need a server with new settings.
   * @param bind "port/namespace/gateway"
   */
  of(bind: string): Frontend {
    const made = this.#made.get(bind);
    if (made?.version === this.#version) return made.frontend;
    const gateway = bind.slice(bind.indexOf("/") + 1);
    const levels = [...this.#policies.at(`bind:${bind}`), ...this.#policies.at(`gateway:${gateway}`)];
    const all = levels.flatMap(({ frontend }) => frontend ?? []);
    const closed = levels.some(({ failsClosed }) => failsClosed);
    const isSame =
      made?.frontend.closed === closed &&
      made.from.length === all.length &&
      made.from.every((one, at) => one === all[at]);
    const frontend = isSame ? made.frontend : this.#compile(bind, all, closed);
    this.#made.set(bind, { version: this.#version, from: all, frontend });
    return frontend;
  }

  /** Marks all entries as unconfirmed after a change of any policy. */
  changed(): void {
    this.#version++;
  }

  /** Drops entries of removed Binds. A draining Bind recreates its entry, which goes with a later call. */
  keep(binds: ReadonlyMap<string, unknown>): void {
    if (this.#made.size <= binds.size) return;
    for (const bind of this.#made.keys()) if (!binds.has(bind)) this.#made.delete(bind);
  }

  #compile(bind: string, all: readonly FrontendSettings[], closed: boolean): Frontend {
    const first = <K extends Exclusive>(member: K) => all.find((settings) => settings[member] !== undefined)?.[member];
    const expression: Expressions["expression"] = (source, place) => this.#policies.expression(source, place);
    const rules = all.flatMap(({ networkAuthorization }) => networkAuthorization?.rules ?? []);
    return compileFrontend({
      trustedProxies: this.#trustedProxies,
      keepalive: first("keepalive"),
      tls: first("tls"),
      http: first("http"),
      connect: first("connect")?.mode,
      proxyProtocol: first("proxyProtocol"),
      denialReason: compileRules(rules, (source) => expression(source, "connection")),
      reports: compileReports(
        { accessLog: first("accessLog"), tracing: first("tracing"), metrics: first("metrics") },
        { ...this.#reports, expression, process: processScope(bind, this.#podName) },
      ),
      closed,
    });
  }
}

/** The CEL scope that is known before any connection: `env` alone. @param bind "port/namespace/gateway" */
function processScope(bind: string, podName: string): Scope {
  const [, namespace = "", gateway = ""] = bind.split("/");
  const env: Env = { podName, namespace, gateway };
  return { root: (name) => (name === "env" ? env : undefined) };
}
