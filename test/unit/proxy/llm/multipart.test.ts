/** The field `model` in forms: where it is found, and what is refused because two readers could differ on it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findModelField } from "../../../../src/proxy/llm/models/multipart.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

const TYPE = "multipart/form-data; boundary=x";

function find(body: string, type = TYPE) {
  return findModelField(Buffer.from(body), type);
}

function part(head: string, content: string): string {
  return `--x\r\n${head}\r\n\r\n${content}\r\n`;
}

const MODEL = part('Content-Disposition: form-data; name="model"', "m-1");

for (const [name, body] of [
  ["quoted", `${MODEL}--x--\r\n`],
  ["a token", `${part("content-disposition:form-data;name=model", "m-1")}--x--`],
  ["folded", `${part('Content-Disposition: form-data;\r\n name="model"', "m-1")}--x--\r\n`],
  ["after others", `preamble\r\n${part("A: b", "name=model")}${part("", "")}${MODEL}--x--\r\nepilogue --x`],
  ["with spaces behind the seam", `${MODEL.replace("--x", "--x \t")}--x--`],
] as const)
  test(`the name is found: ${name}`, () => {
    const field = find(body);
    assert.equal(field?.name, "m-1");
    assert.equal(field.rename("other").toString(), body.replace("m-1", "other"));
  });

test("a form without the field names no model", () => {
  assert.equal(find(`${part('Content-Disposition: form-data; name="n"', "1")}--x--`), undefined);
  assert.equal(find("--x--"), undefined);
});

test("an empty name is a name", () => {
  assert.equal(find(`${part('Content-Disposition: form-data; name="model"', "")}--x--`)?.name, "");
});

for (const [name, body, type] of [
  ["no boundary", `${MODEL}--x--`, "multipart/form-data; charset=utf-8"],
  ["another boundary", `${MODEL}--x--`, "multipart/form-data; boundary=y"],
  ["no end", MODEL, TYPE],
  ["no end of a head", "--x\r\nContent-Disposition: form-data", TYPE],
  ["the field twice", `${MODEL}${MODEL}--x--`, TYPE],
  ["a file of that name", `${part('Content-Disposition: form-data; name="model"; filename="a"', "b")}--x--`, TYPE],
  ["two names", `${part('Content-Disposition: form-data; name="n"; name="model"', "b")}--x--`, TYPE],
  ["an extended name", `${part("Content-Disposition: form-data; name*=UTF-8''model", "b")}--x--`, TYPE],
  ["a long head", `${part(`A: ${"b".repeat(20_000)}`, "c")}--x--`, TYPE],
] as const)
  test(`a form is refused: ${name}`, () => {
    assert.throws(() => find(body, type), { code: "llm_request_invalid" });
  });

test("any bytes give an answer or a refusal", () => {
  const pieces = fc.constantFrom(
    "--x",
    "--",
    "\r\n",
    "\r\n\r\n",
    'Content-Disposition: form-data; name="model"',
    "m",
    ";",
    "x",
  );
  assertProperty(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      try {
        const field = find(parts.join(""));
        if (field !== undefined) assert.equal(find(field.rename("new").toString())?.name, "new");
      } catch (error) {
        assert.equal((error as { code?: string }).code, "llm_request_invalid");
      }
    }),
  );
});
