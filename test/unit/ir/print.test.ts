import { create, ScalarType } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import {
  AuthenticationMode,
  BackendSchema,
  file_gwproxy_config_v1_ir,
  PolicySchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { decodeMessage, encodeMessage, resourceOf } from "../../../src/ir/encode.ts";
import { printable } from "../../../src/ir/print.ts";

const backend = create(BackendSchema, {
  key: "backend/default/llm",
  settings: {
    tls: { privateKeyPem: "PRIVATE", certificatePem: "PUBLIC" },
    auth: {
      kind: { case: "key", value: { value: "sk-secret", location: { location: { case: "cookie", value: "c" } } } },
    },
  },
});

test("a printed resource shows neither credentials nor private keys", () => {
  const text = JSON.stringify(printable(resourceOf("Backend", backend)));
  assert.doesNotMatch(text, /sk-secret|PRIVATE/);
  assert.match(text, /PUBLIC/);
  assert.match(JSON.stringify(backend.settings?.auth), /sk-secret/, "the resource itself is untouched");
});

test("text whose name speaks of a secret is marked to be masked", () => {
  const unmarked = file_gwproxy_config_v1_ir.messages.flatMap(({ fields }) =>
    fields.filter(
      (field) =>
        field.fieldKind === "scalar" &&
        field.scalar === ScalarType.STRING &&
        /private|password|secret|token$/.test(field.name) &&
        field.proto.options?.debugRedact !== true,
    ),
  );
  assert.deepEqual(unmarked.map(String), []);
});

test("a printed key hash is shortened, so that weak keys cannot be guessed from a dump", () => {
  const policy = create(PolicySchema, {
    key: "policy/default/keys",
    units: [
      {
        unit: {
          case: "apiKeyAuthentication",
          value: {
            mode: AuthenticationMode.STRICT,
            keys: [
              { sha256: hash("sha256", "one", "buffer") },
              { sha256: hash("sha256", "two", "buffer"), metadataJson: "{}" },
            ],
          },
        },
      },
    ],
  });
  assert.deepEqual(printable(resourceOf("Policy", policy)), {
    key: "policy/default/keys",
    units: [
      {
        apiKeyAuthentication: {
          mode: "AUTHENTICATION_MODE_STRICT",
          keys: [{ sha256: "7692c3ad…" }, { sha256: "3fc4ccfe…", metadataJson: "{}" }],
        },
      },
    ],
  });
});

test("equal messages have equal versions, and any difference changes the version", () => {
  const again = decodeMessage("Backend", encodeMessage("Backend", backend));
  assert.equal(resourceOf("Backend", again).version, resourceOf("Backend", backend).version);
  again.key = "backend/default/other";
  assert.notEqual(resourceOf("Backend", again).version, resourceOf("Backend", backend).version);
});
