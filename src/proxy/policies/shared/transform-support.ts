/** Compiles one Transform; shared by requests, responses and backends. */
import type { HeaderExpression, Transform } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { bodyOf } from "../../../cel/compile/compile-expression.ts";
import { CelError } from "../../../cel/errors.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import type { Scope } from "../../../cel/scope.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { fieldValueOf, valueOf } from "./expression-support.ts";
import type { PolicyDeps } from "../policy.ts";

/** The message whose headers are edited. */
export interface TransformTarget {
  readonly headers: HeaderList;
  /** Sets a pseudo-header; ignores a value that is not valid for it. */
  setPseudo(name: string, value: string): void;
}

export interface CompiledTransform {
  readonly readsRequestBody: boolean;
  readonly readsResponseBody: boolean;
  /** Adds to the root "metadata"; a key whose expression fails is not set. */
  metadata(exchange: Exchange, scope: Scope): void;
  headers(target: TransformTarget, scope: Scope): void;
  /** Computes the new body; empty when the expression fails. */
  readonly body: ((scope: Scope) => Buffer) | undefined;
}

interface CompiledHeader {
  readonly name: string;
  readonly lower: string;
  readonly pseudo: boolean;
  readonly expression: Expression;
}

export function compileTransform(
  spec: Transform,
  place: CelPhase,
  deps: Pick<PolicyDeps, "expression">,
): CompiledTransform {
  const compile = (source: string): Expression => deps.expression(source, place);
  const metadata = Object.entries(spec.metadata).map(([key, source]) => ({ key, expression: compile(source) }));
  const add = spec.add.map((header) => compileHeader(header, compile));
  const set = spec.set.map((header) => compileHeader(header, compile));
  const remove = spec.remove.map((name) => name.toLowerCase());
  const body = spec.body === "" ? undefined : compile(spec.body);
  const all = [...metadata, ...add, ...set, ...(body === undefined ? [] : [{ expression: body }])];
  return {
    readsRequestBody: all.some(({ expression }) => expression.reads.requestBody),
    readsResponseBody: all.some(({ expression }) => expression.reads.responseBody),
    metadata: (exchange, scope) => addMetadata(metadata, exchange, scope),
    headers(target, scope) {
      for (const header of add) edit(header, target, scope, "add");
      for (const header of set) edit(header, target, scope, "set");
      for (const name of remove) target.headers.remove(name);
    },
    body: body === undefined ? undefined : (scope) => computeBody(body, scope),
  };
}

/** Treats "host" as the authority. */
function compileHeader(
  { name, expression }: HeaderExpression,
  compile: (source: string) => Expression,
): CompiledHeader {
  const lower = name.toLowerCase() === "host" ? ":authority" : name.toLowerCase();
  return { name, lower, pseudo: lower.startsWith(":"), expression: compile(expression) };
}

function addMetadata(
  entries: readonly { readonly key: string; readonly expression: Expression }[],
  exchange: Exchange,
  scope: Scope,
): void {
  if (entries.length === 0) return;
  const known = exchange.root("metadata");
  const metadata = new Map<unknown, unknown>(known instanceof Map ? known : []);
  for (const { key, expression } of entries) {
    const value = valueOf(expression, scope);
    if (value !== undefined) metadata.set(key, value);
  }
  exchange.setRoot("metadata", metadata);
}

function edit(header: CompiledHeader, target: TransformTarget, scope: Scope, how: "add" | "set"): void {
  const value = fieldValueOf(header.expression, scope);
  if (header.pseudo) {
    if (value !== undefined) target.setPseudo(header.lower, value);
  } else if (value === undefined) target.headers.remove(header.lower);
  else target.headers[how](header.name, value);
}

function computeBody(expression: Expression, scope: Scope): Buffer {
  try {
    return bodyOf(expression.evaluate(scope));
  } catch (error) {
    if (error instanceof CelError) return Buffer.alloc(0);
    throw error;
  }
}
