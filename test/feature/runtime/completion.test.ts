/**
 * What the completion scripts offer. bash runs its own one and that for zsh, whose grammar is the same except for the
 * elements of arrays; that for fish is read by a strict reader. zsh and fish themselves are asked as well where they are
 * installed.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { offersOfFish } from "../../support/clients/fish-completion.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

const scripts = new Map<Shell, string>();
let folder = "";

before(() => {
  folder = mkdtempSync(join(tmpdir(), "gwproxy-completion-"));
  for (const shell of SHELLS) {
    const script = execFileSync(process.execPath, [join(ROOT, "bin/gwproxy.mjs"), "completion", shell]);
    scripts.set(shell, script.toString());
    writeFileSync(join(folder, shell), script);
  }
});

after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program that prints what is offered, one a line, perhaps with a description after a tab. */
function printedBy(program: string, ...args: readonly string[]): string[] {
  const { stdout, stderr, error } = spawnSync(program, args, { cwd: ROOT, encoding: "utf8" });
  if (error !== undefined) throw error;
  assert.equal(stderr, "");
  return stdout.split("\n").map((line) => line.split("\t")[0] ?? "");
}

function quotedWords(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(" ");
}

type Ask = (words: readonly string[]) => readonly string[];

const askBash: Ask = (words) =>
  printedBy(
    "bash",
    "--norc",
    "-c",
    `source ${folder}/bash; COMP_WORDS=(${quotedWords(words)}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _gwproxy; printf '%s\\n' "\${COMPREPLY[@]}"`,
  );

/** An element of an array as zsh may write it, and bash may not. */
const ELEMENT = /\$(words|funcstack)\[([\w-]+)\]/g;

/** Completion needs a line editor; what it is asked for is what these builtins are told. Arrays of zsh begin at 1. */
const askZshByBash: Ask = (words) => {
  const script = (scripts.get("zsh") ?? "").replaceAll(ELEMENT, "${$1[$2]}");
  const builtins = `
    compdef() { :; }
    print_fitting() { local each; for each; do [[ "$each" != "\${words[CURRENT]}"* ]] || printf '%s\\n' "$each"; done; }
    _describe() { local list="\${@: -1}[@]"; local names=("\${!list}"); print_fitting "\${names[@]%%:*}"; }
    compset() { words[CURRENT]="\${words[CURRENT]#*=}"; }
    compadd() { shift; print_fitting "$@"; }
    _files() { compgen -f -- "\${words[CURRENT]}"; }
    words=('' ${quotedWords(words)}); CURRENT=$((\${#words[@]} - 1)); funcstack=()`;
  return printedBy("bash", "--norc", "-c", `${builtins}\n${script}\n_gwproxy`);
};

const askFishReader: Ask = (words) => offersOfFish(scripts.get("fish") ?? "", words, readdirSync(ROOT));

const askZsh: Ask = (words) =>
  printedBy(
    "zsh",
    "-f",
    "-c",
    `compdef() { }; source ${folder}/zsh
     _describe() { local -a all; all=("\${(@P)@[-1]}"); print -l -- "\${(@)\${(@M)all:#\${words[CURRENT]}*}%%:*}" }
     compset() { words[CURRENT]="\${words[CURRENT]#*=}" }
     compadd() { shift; print -l -- "\${(@M)@:#\${words[CURRENT]}*}" }
     _files() { print -l -- \${words[CURRENT]}*(N) }
     words=(${quotedWords(words)}); CURRENT=$#words; _gwproxy`,
  );

const askFish: Ask = (words) =>
  printedBy("fish", "--no-config", "-c", `source ${folder}/fish; complete -C '${words.join(" ")}'`);

const isInstalled = (shell: Shell): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

/** Who says what each script offers. */
const ASKED: readonly (readonly [who: string, ask: Ask])[] = [
  ["bash", askBash],
  ["zsh, as bash reads it", askZshByBash],
  ["fish, as a strict reader reads it", askFishReader],
  ...(isInstalled("zsh") ? [["zsh itself", askZsh] as const] : []),
  ...(isInstalled("fish") ? [["fish itself", askFish] as const] : []),
];

/** Words of a command line, the last one unfinished, and what must be among the offers. */
const OFFERS: readonly (readonly [words: readonly string[], offers: readonly string[]])[] = [
  [
    ["gwproxy", ""],
    ["up", "validate", "controller", "completion"],
  ],
  [["gwproxy", "va"], ["validate"]],
  [["gwproxy", "generate", ""], ["types"]],
  [["gwproxy", "up", "--admin-"], ["--admin-address"]],
  [["gwproxy", "validate", "--output", "s"], ["sarif"]],
  [
    ["gwproxy", "generate", "types", "--only", ""],
    ["types", "validators"],
  ],
  [
    ["gwproxy", "controller", "--xds-mode", ""],
    ["plaintext", "tls", "either"],
  ],
  [["gwproxy", "validate", "-f", "Makef"], ["Makefile"]],
  [
    ["gwproxy", "completion", ""],
    ["bash", "zsh", "fish"],
  ],
];

for (const [who, ask] of ASKED)
  test(`commands, options, values and files are completed: ${who}`, () => {
    for (const [words, wanted] of OFFERS) {
      const offered = ask(words);
      for (const word of wanted) assert.ok(offered.includes(word), `${words.join(" ")}: ${offered.join(" ")}`);
      assert.ok(!offered.includes("--log-level"), words.join(" "));
    }
  });
