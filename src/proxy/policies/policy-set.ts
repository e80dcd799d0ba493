/**
 * The policies in force, compiled and indexed by target. The configuration feeds it; rules, listeners and backends read
 * it when they are bound.
 *
 * It fails closed: a policy that cannot be compiled is rejected by name, and its targets refuse traffic unless an
 * earlier version of the policy is still in force.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  Phase,
  FailClosedSchema,
  type BackendSettings,
  type FrontendSettings,
  type Policy,
  type PolicyTarget,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import { ConfigError } from "../../lib/errors.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { POLICIES, type KnownUnit, type PolicyMessages, type PolicyName, type Unit } from "./index.ts";
import { printPolicy } from "./policy-name.ts";
import type { Kept, Middleware, PolicyDeps } from "./policy.ts";
import { compare } from "../../lib/compare.ts";
import { acceptsTrafficPolicies } from "../../ir/keys.ts";

export interface CompiledUnit {
  /** Unique among all versions of all policies. */
  readonly id: string;
  readonly owner: string;
  readonly unit: Unit;
  readonly compiled: CompiledMiddleware;
  /** The half of the unit that runs at a later position of the order (responseBuffer of `buffer`), if it has one. */
  readonly inner: CompiledMiddleware | undefined;
}

export interface CompiledMiddleware {
  readonly middleware: Middleware<RoutedExchange>;
  readonly readsBody: boolean;
  /** Answers requests for OAuth metadata of the protected resource (jwtAuthentication.mcp). */
  readonly servesMetadata: boolean;
  /** Where it is configured, for the log: "GwPolicy default/p spec.traffic.csrf". */
  readonly origin: string | undefined;
}

export interface CompiledPolicy {
  readonly key: string;
  /** Unique among all versions of all policies. */
  readonly id: string;
  readonly createdAtMs: bigint;
  readonly preRouting: boolean;
  readonly override: boolean;
  readonly units: readonly CompiledUnit[];
  readonly backend: BackendSettings | undefined;
  readonly frontend: FrontendSettings | undefined;
  /** True when the policy makes the backends that it targets refuse traffic. */
  readonly failsClosed: boolean;
  readonly targets: readonly string[];
  /** Query parameters in which clients send their credentials. */
  readonly secretParameters: readonly string[];
}

export interface PolicyEnvironment {
  readonly log: PolicyDeps["log"];
  readonly nowMs: () => number;
  readonly expression: PolicyDeps["expression"];
  readonly callout: PolicyDeps["callout"];
  readonly passwords: PolicyDeps["passwords"];
  readonly slots: PolicyDeps["slots"];
}

const NONE: readonly CompiledPolicy[] = [];

export class PolicySet {
  readonly #environment: PolicyEnvironment;
  readonly #policies = new Map<string, CompiledPolicy>();
  readonly #byTarget = new Map<string, CompiledPolicy[]>();
  readonly #kept = new Map<string, Map<string, Kept>>();

  constructor(environment: PolicyEnvironment) {
    this.#environment = environment;
  }

  get log(): PolicyDeps["log"] {
    return this.#environment.log;
  }

  /** Compiles an expression as for PolicyDeps, for settings outside of request policies. */
  expression(source: string, place: CelPhase): Expression {
    return this.#environment.expression(source, place);
  }

  /**
   * Returns the policies of one target, oldest first.
   * @param target as `policyTargetKey` formats it
   */
  at(target: string): readonly CompiledPolicy[] {
    return this.#byTarget.get(target) ?? NONE;
  }

  /**
   * Returns the policies with traffic settings that target a backend, oldest first; few kinds of backends may have some.
   * @param backend its key
   */
  trafficOf(backend: string): readonly CompiledPolicy[] {
    if (!acceptsTrafficPolicies(backend)) return NONE;
    return this.at(`backend:${backend}`).filter(({ units }) => units.length > 0);
  }

  /** Returns the policies that read credentials from the query. */
  withSecretParameters(): readonly CompiledPolicy[] {
    return [...this.#policies.values()].filter(({ secretParameters }) => secretParameters.length > 0);
  }

  /** Returns the header fields, in lower case, in which policies expect credentials. */
  secretHeaders(): ReadonlySet<string> {
    return new Set([...this.#policies.values()].flatMap(({ units }) => units.flatMap(({ unit }) => headersOf(unit))));
  }

  has(key: string): boolean {
    return this.#policies.has(key);
  }

  /** @returns the targets whose policies changed */
  put(policy: CompiledPolicy): string[] {
    const touched = this.#unlink(policy.key);
    this.#policies.set(policy.key, policy);
    for (const target of policy.targets) {
      const list = [...(this.#byTarget.get(target) ?? []), policy];
      list.sort((a, b) => compare(a.createdAtMs, b.createdAtMs) || compare(a.key, b.key));
      this.#byTarget.set(target, list);
    }
    return [...new Set([...touched, ...policy.targets])];
  }

  remove(key: string): string[] {
    for (const kept of this.#kept.get(key)?.values() ?? []) kept.close();
    this.#kept.delete(key);
    return this.#unlink(key);
  }

  /** @throws ConfigError when the data plane cannot execute the policy */
  compile(message: Policy, version: string): CompiledPolicy {
    const shape = shapeOf(message);
    const { preRouting } = shape;
    return {
      ...shape,
      id: `${message.key}@${version}`,
      units: message.units.map(({ unit }, at) => ({
        id: `${message.key}@${version}#${at}`,
        owner: message.key,
        unit,
        compiled: this.compileUnit(unit, message.key, preRouting),
        inner: this.#compileInner(unit, message.key, preRouting),
      })),
      backend: message.backend,
      frontend: message.frontend,
      failsClosed: message.units.some(({ unit }) => unit.case === "failClosed"),
    };
  }

  /** Returns the substitute for a policy that cannot be compiled; it refuses all traffic of its targets. */
  failClosed(message: Policy, reason: string): CompiledPolicy {
    const unit: Unit = { case: "failClosed", value: create(FailClosedSchema, { reason }) };
    const compiled = this.compileUnit(unit, message.key);
    return {
      ...shapeOf(message),
      id: `${message.key}@refused`,
      units: [{ id: `${message.key}@refused`, owner: message.key, unit, compiled, inner: undefined }],
      backend: create(BackendSettingsSchema),
      frontend: undefined,
      failsClosed: true,
    };
  }

  /**
   * Compiles one unit of a policy, or one that merging has made of several.
   * @param preRouting true when its expressions run before a route is chosen
   * @throws ConfigError
   */
  compileUnit(unit: Unit, owner: string, preRouting = false): CompiledMiddleware {
    const { case: name, value } = knownUnit(unit);
    return this.#compile(name, value, owner, preRouting);
  }

  #compileInner(unit: Unit, owner: string, preRouting: boolean): CompiledMiddleware | undefined {
    if (unit.case !== "buffer") return undefined;
    return this.#compile("responseBuffer", unit.value, owner, preRouting);
  }

  #compile<Name extends PolicyName>(
    name: Name,
    message: PolicyMessages[Name],
    owner: string,
    preRouting: boolean,
  ): CompiledMiddleware {
    let readsBody = false;
    const { log, nowMs, callout, passwords, slots } = this.#environment;
    const deps: PolicyDeps = {
      log,
      nowMs,
      callout,
      passwords,
      slots,
      owner,
      expression: (source, place) => {
        const phase = preRouting && place === "request" ? "gateway" : place;
        const expression = this.#environment.expression(source, phase);
        readsBody ||= expression.reads.requestBody;
        return expression;
      },
      keep: (key, create) => this.#keep(owner, key, create),
    };
    const middleware = POLICIES[name].policy.compile(message, deps);
    // Only the policy of that name has such a member.
    const servesMetadata = name === "jwtAuthentication" && "mcp" in message && message.mcp !== undefined;
    return { middleware, readsBody, servesMetadata, origin: originOf(owner, name) };
  }

  #keep<T extends Kept>(owner: string, key: string, make: () => T): T {
    let kept = this.#kept.get(owner);
    if (kept === undefined) this.#kept.set(owner, (kept = new Map()));
    if (!kept.has(key)) kept.set(key, make());
    // The cast is sound because one policy uses one key for one kind of value (PolicyDeps.keep).
    return kept.get(key) as T;
  }

  #unlink(key: string): string[] {
    const old = this.#policies.get(key);
    if (old === undefined) return [];
    this.#policies.delete(key);
    for (const target of old.targets) {
      const left = this.at(target).filter((policy) => policy.key !== key);
      if (left.length === 0) this.#byTarget.delete(target);
      else this.#byTarget.set(target, left);
    }
    return [...old.targets];
  }
}

function shapeOf(
  message: Policy,
): Pick<CompiledPolicy, "key" | "createdAtMs" | "preRouting" | "override" | "targets" | "secretParameters"> {
  return {
    key: message.key,
    createdAtMs: message.createdAtMs,
    preRouting: message.phase === Phase.PRE_ROUTING,
    override: message.override,
    targets: message.targets.map(policyTargetKey),
    secretParameters: message.units.flatMap(({ unit }) => parametersOf(unit)),
  };
}

/** Matches the calls with a constant argument that expressions read a parameter with: `request.uri.query("ticket")`. */
const QUERY_CALL = /\.query\(\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*\)/g;

function parametersOf(unit: Unit): string[] {
  switch (unit.case) {
    case "jwtAuthentication":
    case "basicAuthentication":
    case "apiKeyAuthentication": {
      const location = unit.value.location?.location;
      if (location?.case === "queryParameter") return [location.value];
      if (location?.case !== "expression") return [];
      return [...location.value.matchAll(QUERY_CALL)].flatMap(([, double, single]) => double ?? single ?? []);
    }
    default:
      return [];
  }
}

function headersOf(unit: Unit): string[] {
  switch (unit.case) {
    case "jwtAuthentication":
    case "basicAuthentication":
    case "apiKeyAuthentication": {
      const location = unit.value.location?.location;
      return location?.case === "header" ? [location.value.name.toLowerCase()] : [];
    }
    default:
      return [];
  }
}

/** @throws ConfigError for a target without a kind */
function policyTargetKey({ target, section, port }: PolicyTarget): string {
  if (target.case === undefined) throw new ConfigError("policy target without a kind");
  if (target.case === "gateway" && port !== 0) return `bind:${port}/${target.value}`;
  if (target.case === "gateway" && section !== "") return `listener:${target.value}.${section}`;
  return section === "" ? `${target.case}:${target.value}` : `${target.case}:${target.value}#${section}`;
}

/** @throws ConfigError for a unit of a newer version */
export function knownUnit(unit: Unit): KnownUnit {
  if (unit.case === undefined) throw new ConfigError("a unit of the policy is unknown to this version");
  return unit;
}

/**
 * Fields of `spec.traffic` whose name differs from their unit. A policy that failed to compile has no field to name.
 */
const FIELDS: Readonly<Partial<Record<PolicyName, string>>> = {
  failClosed: "",
  localRateLimit: "rateLimit.local",
  globalRateLimit: "rateLimit.global",
  responseBuffer: "buffer.response",
};

/** @param owner keys of one policy, or of several that were merged; the key of a route for its own filters */
function originOf(owner: string, name: PolicyName): string {
  const field = FIELDS[name] ?? name;
  return printPolicy(owner, field === "" ? "" : `spec.traffic.${field}`);
}
