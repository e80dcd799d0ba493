/**
 * The head of a call to a service of the user's own, whose headers, path, method and authority may be computed by
 * expressions. Webhooks of guards and callouts of models use it.
 */
import type { HeaderExpression } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { fieldValueOf } from "../../policies/shared/expression-support.ts";
import { editableName } from "../../policies/shared/header-options.ts";

/** Visible ASCII beginning with a slash: other characters could split the request line. */
const TARGET = /^\/[\u0021-\u007e]*$/;
const METHOD = /^[A-Z]{1,32}$/;

export interface ServiceHead {
  path: string;
  method: string;
  authority: string | undefined;
}

interface AddedHeader {
  /** In lower case; ":path", ":method" and ":authority" change the head. */
  readonly name: string;
  readonly expression: Expression;
}

export function compileServiceHeaders(
  headers: readonly HeaderExpression[],
  expression: BackendDeps["expression"],
): AddedHeader[] {
  return headers.map(({ name, expression: source }) => ({
    name: name.toLowerCase(),
    expression: expression(source, "llm"),
  }));
}

/** Fields that describe the body of another message, or that would encode the answer. */
const OWN: ReadonlySet<string> = new Set(["content-type", "content-encoding", "accept-encoding", "host"]);

export function isForwardable(name: string): boolean {
  return editableName(name) !== undefined && !OWN.has(name);
}

/** Adds computed headers; one whose expression fails is removed. */
export function addServiceHeaders(
  added: readonly AddedHeader[],
  scope: Scope,
  list: HeaderList,
  head: ServiceHead,
): void {
  for (const { name, expression } of added) {
    const value = fieldValueOf(expression, scope);
    if (!name.startsWith(":")) list.remove(name);
    if (value === undefined) continue;
    if (name === ":path") head.path = TARGET.test(value) ? value : head.path;
    else if (name === ":method") head.method = METHOD.test(value) ? value : head.method;
    else if (name === ":authority" || name === "host") head.authority = value;
    else if (isForwardable(name)) list.add(name, value);
  }
}
