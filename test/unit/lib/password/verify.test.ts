import assert from "node:assert/strict";
import { test } from "node:test";
import { findHashError, formOf } from "../../../../src/lib/password/form.ts";
import { verifyPassword } from "../../../../src/lib/password/verify.ts";
import { HTPASSWD } from "../../../support/fixtures/htpasswd.ts";

/** These forms look at the start of a password alone. */
const CHARACTERS_SEEN: Readonly<Record<string, number>> = { "des-crypt": 8, bcrypt: 72 };

for (const { flags, password, hash } of HTPASSWD) {
  test(`${flags} ${hash.slice(0, 12)}… fits "${password.slice(0, 20)}" and nothing near it`, () => {
    assert.equal(findHashError(hash), undefined);
    assert.ok(verifyPassword(Buffer.from(password), hash));
    const seen = CHARACTERS_SEEN[formOf(hash) ?? ""] ?? Infinity;
    for (const wrong of [`${password.slice(1)}x`, password.toUpperCase() + "y", `${password}\0`, "x"]) {
      if (wrong.slice(0, seen) === password.slice(0, seen)) continue;
      assert.ok(!verifyPassword(Buffer.from(wrong), hash), JSON.stringify(wrong));
    }
  });
}

test("plain text, other forms and costs without a bound are refused with a reason that does not repeat them", () => {
  const refused = [
    "secret",
    "",
    "{SHA}short",
    "{SSHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
    "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
    "$2x$05$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe",
    "$2y$31$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe",
    "$2y$03$wkcVS32lLf0d7TKFTIb33eaBWOpkpIP1d4YahqSiteTx5gt0zpMAe",
    "$5$rounds=999999999$hyRBfLtP3VHvuaas$LJNvPYUZz48s1HHtbK8J1j6kQI4CYswyWGf5Erw/jsA",
    "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$aGFzaGhhc2hoYXNo",
  ];
  for (const hash of refused) {
    assert.ok(findHashError(hash) !== undefined, hash);
    assert.ok(hash === "" || !findHashError(hash)?.includes(hash), hash);
    assert.ok(!verifyPassword(Buffer.from("secret"), hash), hash);
  }
});

test("fewer than a thousand rounds count as a thousand, as in the C library", () => {
  const thousand = HTPASSWD.find(({ hash }) => hash.startsWith("$5$rounds=1000$a$"));
  assert.ok(thousand);
  assert.ok(verifyPassword(Buffer.from("secret"), thousand.hash.replace("rounds=1000", "rounds=10")));
});
