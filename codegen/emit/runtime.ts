/**
 * Writes runtime.ts: the functions that validators call, as text, so that `gwproxy generate types` can print them into
 * its output.
 */
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import { header, literal } from "../print.ts";
import { RUNTIME_FILES } from "./validators.ts";

/** @param lib the folder src/lib, with a slash at the end */
export function emitRuntime(lib: string): string {
  const texts = Object.fromEntries(
    RUNTIME_FILES.map((name) => [name, plainText(readFileSync(`${lib}${name}.ts`, "utf8"))]),
  );
  return `${header("//", "src/lib")}
/** By module of src/lib: its functions in JavaScript, without types and exports. */
export const RUNTIME: Readonly<Record<string, string>> = ${literal(texts)};
`;
}

/** @throws when the module imports another one, because its text alone would not run */
function plainText(source: string): string {
  const { code: outputText } = transformSync(source, { loader: "ts", format: "esm", target: "es2022" });
  if (/^import /m.test(outputText)) throw new Error("a function that validators call may import nothing");
  return outputText.replace(/^export \{[^}]*\};\n/m, "").replaceAll("/* @__PURE__ */ ", "");
}
