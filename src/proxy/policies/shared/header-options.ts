/**
 * Applies header edits in the format of the Envoy APIs (`HeaderValueOption`), for external authorization, external
 * processing and rate limit services: values as text or bytes, and four ways to treat an existing header. Values that
 * HTTP cannot carry are omitted, and framing fields cannot be edited.
 */
import {
  HeaderValueOption_HeaderAppendAction as Action,
  type HeaderValue,
  type HeaderValueOption,
} from "../../../../generated/proto/envoy/config/core/v3/base_pb.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { fieldOf, isFieldValue, ROLE } from "../../exchange/fields.ts";
import type { TransformTarget } from "./transform-support.ts";

const OURS: ReadonlySet<number> = new Set([
  ROLE.hop,
  ROLE.proxyChallenge,
  ROLE.connection,
  ROLE.transferEncoding,
  ROLE.contentLength,
  ROLE.te,
  ROLE.upgrade,
  ROLE.keepAlive,
  ROLE.expect,
]);

/** Returns the value as header lists hold it, one character per byte; undefined when a field cannot carry it. */
export function headerText({ value, rawValue }: HeaderValue): string | undefined {
  const bytes = rawValue.length > 0 ? Buffer.from(rawValue) : Buffer.from(value);
  const text = bytes.toString("latin1").trim();
  return isFieldValue(text) ? text : undefined;
}

/** Returns the lower-case name of a field that a service may write; undefined for framing fields and invalid names. */
export function editableName(name: string): string | undefined {
  const field = fieldOf(name);
  return field === undefined || OURS.has(field.role) ? undefined : field.name;
}

/** @param target receives pseudo-headers and Host through `setPseudo` */
export function applyHeaderOptions(options: readonly HeaderValueOption[], target: TransformTarget): void {
  for (const option of options) {
    const { header } = option;
    const text = header === undefined ? undefined : headerText(header);
    if (header === undefined) continue;
    const lower = header.key.toLowerCase();
    if (text === undefined) {
      // The client's own value must not remain in place of the one that the service meant.
      if (!isAppended(option)) removeHeaders([lower], target.headers);
    } else if (lower.startsWith(":")) target.setPseudo(lower, text);
    else if (lower === "host") target.setPseudo(":authority", text);
    else {
      const name = editableName(lower);
      if (name !== undefined) edit(target.headers, name, text, option);
    }
  }
}

/** Returns true when the value joins existing ones instead of replacing them. */
function isAppended({ append, appendAction }: HeaderValueOption): boolean {
  return appendAction === Action.ADD_IF_ABSENT || (appendAction === Action.APPEND_IF_EXISTS_OR_ADD && append === true);
}

/**
 * Removes fields that only a service may set: these names, and names that an application server may confuse with them
 * because it reads `_` as `-` (RFC 3875 §4.1.18).
 * @param names lower-case, with `-` for `_`
 */
export function removeForgeable(names: ReadonlySet<string>, headers: HeaderList): void {
  const { raw } = headers;
  for (let at = 0; at < raw.length;)
    if (names.has(comparableName(raw[at] as string))) raw.splice(at, 2);
    else at += 2;
}

export function comparableName(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

export function removeHeaders(names: readonly string[], headers: HeaderList): void {
  for (const name of names) {
    const lower = editableName(name);
    if (lower !== undefined && lower !== "host") headers.remove(lower);
  }
}

function edit(headers: HeaderList, name: string, text: string, { append, appendAction }: HeaderValueOption): void {
  switch (appendAction) {
    case Action.APPEND_IF_EXISTS_OR_ADD:
      // Zero also means "unset": then the older field `append` decides, and its default is to overwrite.
      if (append === true) headers.add(name, text);
      else headers.set(name, text);
      break;
    case Action.ADD_IF_ABSENT:
      if (!headers.has(name)) headers.add(name, text);
      break;
    case Action.OVERWRITE_IF_EXISTS:
      if (headers.has(name)) headers.set(name, text);
      break;
    case Action.OVERWRITE_IF_EXISTS_OR_ADD:
      headers.set(name, text);
  }
}
