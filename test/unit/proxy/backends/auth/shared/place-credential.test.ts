import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { CredentialSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../../../../src/lib/header-list.ts";
import { placeCredential } from "../../../../../../src/proxy/backends/auth/shared/place-credential.ts";

function place(
  credential: MessageInitShape<typeof CredentialSchema>,
  headers = new HeaderList(),
  path = "/p",
): string[] {
  const placed = placeCredential(create(CredentialSchema, credential), headers, path);
  return [placed, ...headers.raw];
}

test("a bare token gets the Bearer scheme, a value that names its scheme is whole", () => {
  assert.deepEqual(place({ value: "k" }), ["/p", "authorization", "Bearer k"]);
  assert.deepEqual(place({ value: "Basic eDp5" }), ["/p", "authorization", "Basic eDp5"]);
  assert.deepEqual(place({ value: "Bearer k" }), ["/p", "authorization", "Bearer k"]);
});

test("an empty credential is placed all the same and replaces the client's own", () => {
  const headers = new HeaderList(["Authorization", "Bearer client", "authorization", "more"]);
  assert.deepEqual(place({ value: "" }, headers), ["/p", "Authorization", "Bearer "]);
});

test("a header location is written with its prefix and nothing else", () => {
  const location = { location: { case: "header" as const, value: { name: "X-Api-Key", prefix: "" } } };
  assert.deepEqual(place({ value: "k", location }), ["/p", "x-api-key", "k"]);
});

test("a query parameter replaces the client's of that name, however it was written", () => {
  const location = { location: { case: "queryParameter" as const, value: "key" } };
  const headers = new HeaderList();
  assert.deepEqual(place({ value: "a b&c", location }, headers, "/p?x=1&k%65y=evil&key=evil"), [
    "/p?x=1&key=a%20b%26c",
  ]);
  assert.deepEqual(place({ value: "k", location }), ["/p?key=k"]);
});

test("a cookie replaces the client's of that name and keeps the others", () => {
  const location = { location: { case: "cookie" as const, value: "s" } };
  const headers = new HeaderList(["cookie", "a=1; s=evil", "cookie", "b=2"]);
  assert.deepEqual(place({ value: "k", location }, headers), ["/p", "cookie", "a=1; b=2; s=k"]);
});
