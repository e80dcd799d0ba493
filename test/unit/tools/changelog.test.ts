import assert from "node:assert/strict";
import { test } from "node:test";
import { addRelease } from "../../../tools/changelog.ts";

const HEAD = "# Changelog\n\nWhat users notice.\n";

test("a release lists its notes by kind, security first, and stands above the older ones", () => {
  const first = addRelease(HEAD, "0.1.0 (2026-01-01)", [{ kind: "added", text: "A gateway.\n" }]);
  const second = addRelease(first, "0.2.0 (2026-02-01)", [
    { kind: "fixed", text: "A crash." },
    { kind: "security", text: "A hole." },
    { kind: "fixed", text: "Another crash." },
  ]);
  assert.equal(
    second,
    `${HEAD}
## 0.2.0 (2026-02-01)

### Security

- A hole.

### Fixed

- A crash.
- Another crash.

## 0.1.0 (2026-01-01)

### Added

- A gateway.
`,
  );
});

test("the paragraphs of a note stay in one entry", () => {
  const text = addRelease(HEAD, "0.1.0", [{ kind: "added", text: "- One line\nand more.\n\nA second paragraph.\n" }]);
  assert.ok(text.endsWith("- One line\n  and more.\n\n  A second paragraph.\n"));
});

test("a release without notes is a title and nothing else", () => {
  assert.equal(addRelease(HEAD, "0.1.1", []), `${HEAD}\n## 0.1.1\n\n`);
});
