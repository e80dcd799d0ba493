/**
 * Translates `traffic.basicAuthentication` (RFC 7617): users in lines of the htpasswd format. An invalid line is
 * reported and skipped. Without any valid user the unit is still sent, so that every credential is rejected.
 */
import { create } from "@bufbuild/protobuf";
import type { BasicAuthentication as ApiBlock } from "../../../generated/types/traffic-authentication.ts";
import {
  BasicAuthenticationSchema,
  BasicUserSchema,
  type BasicUser,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { findHashError } from "../../lib/password/form.ts";
import { AUTHENTICATION_MODES, credentialLocation } from "./shared/authentication.ts";
import type { UnitContext, UnitTranslator } from "./shared/unit.ts";

const FIELD = "basicAuthentication";
const DEFAULT_ENTRY = ".htaccess";
const DEFAULT_REALM = "Restricted";

export const basicAuthentication: UnitTranslator = {
  translate({ basicAuthentication: block }, context) {
    if (block === undefined) return undefined;
    const value = create(BasicAuthenticationSchema, {
      mode: AUTHENTICATION_MODES[block.mode ?? "Strict"],
      realm: realmOf(block, context),
      users: usersOf(linesOf(block, context), context),
      location: credentialLocation(block.location, `${FIELD}.location`, "Basic", context),
    });
    return { case: "basicAuthentication", value };
  },
};

/** Replaces control characters by spaces, since a header field cannot hold them (RFC 9110 §5.5). */
function realmOf({ realm = DEFAULT_REALM }: ApiBlock, context: UnitContext): string {
  const clean = [...realm].map((character) => (character < " " || character === "\u007f" ? " " : character)).join("");
  if (clean !== realm) context.report(`${FIELD}.realm`, "control characters are replaced by spaces");
  return clean;
}

interface Line {
  readonly text: string;
  readonly field: string;
  /** Names the line in messages. */
  readonly name: string;
}

function linesOf(block: ApiBlock, context: UnitContext): Line[] {
  if (block.users !== undefined)
    return block.users.map((text, at) => ({ text, field: `${FIELD}.users[${at}]`, name: "the line" }));
  const field = `${FIELD}.secretRef`;
  if (block.secretRef === undefined) return []; // admission requires one of the two
  const { name, group, kind, key = DEFAULT_ENTRY } = block.secretRef;
  const ref = { name, ...(group === undefined ? {} : { group }), ...(kind === undefined ? {} : { kind }) };
  const found = context.secrets.entry(ref, key);
  if ("error" in found) {
    context.report(field, found.error);
    return [];
  }
  return found.value
    .split("\n")
    .map((text, at) => ({ text, field, name: `Secret ${name}, entry ${key}, line ${at + 1}` }));
}

function usersOf(lines: readonly Line[], context: UnitContext): BasicUser[] {
  const users = new Map<string, BasicUser>();
  for (const { text, field, name } of lines) {
    const line = text.trim();
    if (line === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    const user = line.slice(0, Math.max(0, colon));
    // The htpasswd format allows a third part, which has no meaning.
    const hash = line.slice(colon + 1).split(":", 1)[0] ?? "";
    const error =
      user === "" ? "not of the form user:hash" : users.has(user) ? "the user is there already" : findHashError(hash);
    if (error === undefined) users.set(user, create(BasicUserSchema, { name: user, passwordHash: hash }));
    else context.report(field, `${name} is skipped: ${error}`);
  }
  return [...users.values()];
}
