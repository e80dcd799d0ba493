/** The role that the identity of the environment takes on (`assumeRole`), for each session name and set of tags. */
import { hash } from "node:crypto";
import { hostname } from "node:os";
import type { AssumedRole } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../../cel/expression.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { BlockDeps } from "../auth-kind.ts";
import { evaluateText } from "../shared/evaluate-text.ts";

/** A session to ask for. */
export interface RoleSession {
  /** Digest of everything that makes the session different from others. */
  readonly key: string;
  /** Parameters of the call. */
  readonly parameters: readonly (readonly [string, string])[];
}

const SESSION_NAME = /^[\w+=,.@-]{2,64}$/;
const TAG_VALUE = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u;

/** @returns a function that names the session of a request; it throws ProxyError credential_unavailable */
export function compileRole(role: AssumedRole, { expression, block }: BlockDeps): (caller: AuthCaller) => RoleSession {
  const ownName = role.sessionName || `gwproxy-${ownDigest(block)}`;
  const nameOf = role.sessionNameExpression === "" ? undefined : expression(role.sessionNameExpression, "backend");
  const tags = role.tags.map(({ key, value, expression: source }) => ({
    key,
    value,
    valueOf: source === "" ? undefined : expression(source, "backend"),
  }));
  return (caller) => {
    const name = nameOf === undefined ? ownName : evaluated(nameOf, caller, SESSION_NAME, "the name of the session");
    const values = tags.map(({ key, value, valueOf }) =>
      valueOf === undefined ? value : evaluated(valueOf, caller, TAG_VALUE, `the tag ${key}`),
    );
    const parameters: [string, string][] = [
      ["Action", "AssumeRole"],
      ["RoleArn", role.roleArn],
      ["RoleSessionName", name],
    ];
    for (const [at, { key }] of tags.entries())
      parameters.push([`Tags.member.${at + 1}.Key`, key], [`Tags.member.${at + 1}.Value`, values[at] ?? ""]);
    return { key: hash("sha256", JSON.stringify([name, values])), parameters };
  };
}

/** Names a session of this process and block. All threads of a process have to agree, because they share sessions. */
function ownDigest(block: string): string {
  return hash("sha256", `${hostname()}\n${process.pid}\n${block}`).slice(0, 16);
}

function evaluated(expression: Expression, caller: AuthCaller, form: RegExp, what: string): string {
  const text = evaluateText(expression, caller);
  if (text !== undefined && form.test(text)) return text;
  throw new ProxyError("credential_unavailable", { detail: `the expression for ${what} gives no valid text` });
}
