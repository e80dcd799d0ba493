/**
 * The completion scripts of a program whose descriptions hold everything that a shell takes for its own: they are those
 * of the golden files, and their syntax is strictly right. `UPDATE_GOLDEN=1` rewrites them.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Argument, Command, Option } from "commander";
import { bashScript } from "../../../src/cli/completion/bash.ts";
import { fishScript } from "../../../src/cli/completion/fish.ts";
import { completionTable } from "../../../src/cli/completion/table.ts";
import { zshScript } from "../../../src/cli/completion/zsh.ts";
import { readFishScript } from "../../support/clients/fish-completion.ts";

const GOLDEN = join(import.meta.dirname, "../../golden/completion");
const HOSTILE = 'it\'s "a" $(rm -r /) `x` \\ {b} [c]: *?;&|<>!#~ ü';

function hostileProgram(): Command {
  const program = new Command("gwproxy").description(HOSTILE);
  program
    .command("serve")
    .description(HOSTILE)
    .argument("[paths...]", HOSTILE)
    .addOption(new Option("-o, --output <form>", HOSTILE).choices(["text", "json"]))
    .option("--folder <dir>", HOSTILE)
    .option("--any <text>", HOSTILE)
    .option("--on <true|false>", HOSTILE)
    .option("-q, --quiet", HOSTILE);
  const nested = program.command("generate").description("nested");
  nested
    .command("types")
    .description("deeper")
    .addArgument(new Argument("<shell>").choices(["a", "b"]));
  return program;
}

function parseWithBash(script: string): void {
  execFileSync("bash", ["-n"], { input: script, stdio: "pipe" });
}

/** Scripts, and what reads them without running them; the grammar of bash holds all that the one for zsh uses. */
const RENDERED = [
  ["bash", bashScript, parseWithBash],
  ["zsh", zshScript, parseWithBash],
  ["fish", fishScript, (script: string) => void readFishScript(script)],
] as const;

for (const [shell, render, read] of RENDERED)
  test(`the script for ${shell} is that of the golden file, and can be read`, () => {
    const script = render(completionTable(hostileProgram()));
    read(script);
    const path = join(GOLDEN, `${shell}.txt`);
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, script);
    assert.equal(readFileSync(path, "utf8"), script, "run with UPDATE_GOLDEN=1 and review the difference");
    const unclosed = script.replace(/'(?=[^']*$)/, "");
    if (shell !== "bash") assert.throws(() => read(unclosed), "a quote too few is noticed");
  });
