/** The examples of docs/delegation.md are served as they stand, and explained as the page says. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { answerTo, startTreeEcho } from "../../support/gateway/delegation.ts";
import { documents, GATEWAY, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { contextOf } from "../../support/proofs/prove.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/delegation.md"), "utf8");
const [SITE = "", GRANT = "", INHERITED = ""] = [...PAGE.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = ""]) => yaml);
const [, EXPLAINED = ""] = /```json\n([^]*?)```/.exec(PAGE) ?? [];

test("the page's routes serve, with consent by parentRefs or by its grant, and are explained as it says", async (t) => {
  const context = contextOf(t);
  const port = await startTreeEcho(context);
  const backend = staticBackend("cart", port).replace("{name: cart}", "{name: cart, namespace: shop}");
  const gateway = await startGateway(context, documents(GATEWAY, backend, SITE));
  assert.equal(await answerTo(gateway.url(), "/shop/cart"), "/shop/cart - -");
  assert.equal(await answerTo(gateway.url(), "/shop/else"), "404");
  assert.equal(await answerTo(gateway.url(), "POST /shop/cart"), "404");

  const orphan = SITE.replace(/ {2}parentRefs: \[\{group.*\n/, "");
  assert.notEqual(orphan, SITE);
  await gateway.change(documents(GATEWAY, backend, orphan));
  assert.equal(await answerTo(gateway.url(), "/shop/cart"), "500");
  await gateway.change(documents(GATEWAY, backend, orphan, GRANT));
  assert.equal(await answerTo(gateway.url(), "/shop/cart"), "/shop/cart - -");

  const [, cart = ""] = SITE.split("---\n");
  await gateway.change(documents(GATEWAY, backend, INHERITED, cart));
  assert.equal(await answerTo(gateway.url(), "/shop/cart"), "/shop/cart - -");
  assert.deepEqual(await gateway.proxy.explain("shop/cart"), JSON.parse(EXPLAINED));
});
