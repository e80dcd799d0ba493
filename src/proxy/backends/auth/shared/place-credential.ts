/** Writes a credential into a request that leaves. The kinds of authentication, and credentials beside them, use it. */
import type { Credential } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../../lib/header-list.ts";
import { ProxyError } from "../../../exchange/errors.ts";

/** Matches a scheme, one space and more: such a value is sent as it is, without "Bearer". */
const NAMES_SCHEME = /^[A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]* \S/;

/**
 * Edits the headers. The credential replaces anything that the client sent in the same place, so that both never travel
 * together.
 * @param path path and query
 * @returns the path, which differs when the credential is a query parameter
 * @throws ProxyError internal for a location that cannot be written, credential_unavailable for what a cookie cannot hold
 */
export function placeCredential(credential: Credential, headers: HeaderList, path: string): string {
  const { value } = credential;
  const location = credential.location?.location;
  switch (location?.case) {
    case undefined:
      headers.set("authorization", NAMES_SCHEME.test(value) ? value : `Bearer ${value}`);
      return path;
    case "header":
      headers.set(location.value.name.toLowerCase(), `${location.value.prefix}${value}`);
      return path;
    case "cookie":
      placeCookie(headers, location.value, value);
      return path;
    case "queryParameter":
      return placeParameter(path, location.value, value);
    case "expression":
      throw new ProxyError("internal", { detail: "a credential cannot be placed by an expression" });
  }
}

/** A token that was fetched must not end its own cookie and begin another one. */
function placeCookie(headers: HeaderList, name: string, value: string): void {
  if (value.includes(";"))
    throw new ProxyError("credential_unavailable", { detail: "the credential would end its cookie" });
  const kept = headers
    .getAll("cookie")
    .flatMap((line) => line.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair !== "" && pair.split("=", 1)[0] !== name);
  headers.set("cookie", [...kept, `${name}=${value}`].join("; "));
}

function placeParameter(path: string, name: string, value: string): string {
  const mark = path.indexOf("?");
  const start = mark < 0 ? path : path.slice(0, mark);
  const pairs = mark < 0 ? [] : path.slice(mark + 1).split("&");
  const kept = pairs.filter((pair) => pair !== "" && decoded(pair.split("=", 1)[0] ?? "") !== name);
  return `${start}?${[...kept, `${encodeURIComponent(name)}=${encodeURIComponent(value)}`].join("&")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    // Invalid percent-encoding cannot spell the name of the parameter.
    return text;
  }
}
