/**
 * Where each field is implemented, found in the code: the type checker says which files of the translator read it, and
 * the names of the messages that such a file makes say which files of the proxy go on with them.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Node, Project, type SourceFile } from "ts-morph";
import { referencesOf, type SchemaGraph } from "../../codegen/graph.ts";

/** "Component.field" → files below the root, the translator's before the proxy's. */
export type Implementation = ReadonlyMap<string, readonly string[]>;

const READERS = ["src/translator/**/*.ts", "src/sources/remote/**/*.ts", "src/deployer/**/*.ts", "src/status/**/*.ts"];
/** More files than these say only that a message is passed around. */
const MAX_CONSUMERS = 3;

export function findImplementation(root: string): Implementation {
  const project = new Project({
    compilerOptions: {
      allowImportingTsExtensions: true,
      strict: true,
      lib: ["lib.es2024.d.ts"],
      types: [],
      skipLibCheck: true,
      target: 9,
      module: 199,
    },
    skipFileDependencyResolution: false,
  });
  project.addSourceFilesAtPaths(["generated/types/**/*.ts", ...READERS].map((pattern) => join(root, pattern)));
  const consumers = messageConsumers(root);
  const found = new Map<string, Set<string>>();
  for (const file of project.getSourceFiles(READERS.map((pattern) => join(root, pattern)))) {
    const path = file.getFilePath().slice(root.length + 1);
    const proxy = proxyFiles(root, path, file, consumers);
    for (const field of fieldsReadBy(file)) {
      const files = found.get(field) ?? new Set();
      files.add(path);
      for (const other of proxy) files.add(other);
      found.set(field, files);
    }
  }
  return new Map([...found].map(([field, files]) => [field, [...files].sort(translatorFirst)]));
}

/**
 * Files that name a field of a type which they import, or of one below it: where code hands a value on through a mapped
 * or generic type, the checker cannot say which field that was. Of all files only those whose type is nearest count.
 */
export function findMentions(root: string, graph: SchemaGraph): Implementation {
  const found = new Map<string, { distance: number; files: string[] }>();
  for (const path of globSync(READERS, { cwd: root }).sort()) {
    const text = readFileSync(join(root, path), "utf8");
    const words = new Set(text.match(/\w+/g));
    const own = [...importedComponents(graph, text), ...componentsNamedAs(graph, basename(path, ".ts"))];
    for (const [component, distance] of componentsBelow(graph, own)) {
      for (const field of Object.keys(graph.get(component).schema.properties ?? {})) {
        if (!words.has(field)) continue;
        const key = `${component}.${field}`;
        const known = found.get(key);
        if (known === undefined || known.distance > distance) found.set(key, { distance, files: [path] });
        else if (known.distance === distance) known.files.push(path);
      }
    }
  }
  return new Map([...found].map(([field, { files }]) => [field, files]));
}

function importedComponents(graph: SchemaGraph, text: string): string[] {
  return [...text.matchAll(/import type \{([^}]*)\} from "[^"]*generated\/types\/[^"]*"/g)]
    .flatMap(([, names = ""]) => names.split(","))
    .map((name) => name.trim())
    .filter((name) => graph.components.has(name));
}

/** What the field holds after which a file is named, such as `extAuth` for ext-auth.ts. */
function componentsNamedAs(graph: SchemaGraph, file: string): string[] {
  const field = file.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  return [...graph.components.values()].flatMap(({ schema }) => {
    const site = schema.properties?.[field];
    return site === undefined ? [] : referencesOf(site);
  });
}

/** Each component that the given ones hold, with the number of fields on the way to it. */
function componentsBelow(graph: SchemaGraph, names: readonly string[]): Map<string, number> {
  const distances = new Map(names.map((name) => [name, 0]));
  for (const [name, distance] of distances) {
    for (const below of referencesOf(graph.get(name).schema)) {
      if (!distances.has(below)) distances.set(below, distance + 1);
    }
  }
  return distances;
}

/** "Component.field" for each member of a generated type that the file names. */
function fieldsReadBy(file: SourceFile): Set<string> {
  const fields = new Set<string>();
  file.forEachDescendant((node) => {
    const name = Node.isPropertyAccessExpression(node)
      ? node.getNameNode()
      : Node.isBindingElement(node)
        ? (node.getPropertyNameNode() ?? node.getNameNode())
        : undefined;
    if (name === undefined) return;
    const symbol = Node.isBindingElement(node)
      ? node.getParent().getType().getProperty(name.getText())
      : name.getSymbol();
    for (const declaration of symbol?.getDeclarations() ?? []) {
      const parent = declaration.getParent();
      if (!Node.isPropertySignature(declaration) || !Node.isInterfaceDeclaration(parent)) continue;
      if (!declaration.getSourceFile().getFilePath().includes("/generated/types/")) continue;
      fields.add(`${parent.getName()}.${declaration.getName()}`);
    }
  });
  return fields;
}

/** The file of the same name in the proxy; without one, those that take the messages which this file makes. */
function proxyFiles(
  root: string,
  path: string,
  file: SourceFile,
  consumers: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const twin = path.replace("src/translator/", "src/proxy/");
  // A policy of several files is a folder, and its main file has the name of the folder.
  for (const each of [twin, twin.replace(/([^/]+)\.ts$/, "$1/$1.ts")])
    if (twin !== path && existsSync(join(root, each))) return [each];
  const made = file
    .getImportDeclarations()
    .filter((declaration) => declaration.getModuleSpecifierValue().includes("generated/proto"))
    .flatMap((declaration) => declaration.getNamedImports().map((named) => named.getName()))
    .filter((name) => name.endsWith("Schema"));
  const users = new Set(made.flatMap((name) => consumers.get(name.slice(0, -"Schema".length)) ?? []));
  return users.size <= MAX_CONSUMERS ? [...users] : [];
}

/** By message: the files of the proxy that import its type. */
function messageConsumers(root: string): Map<string, string[]> {
  const result = new Map<string, string[]>();
  for (const path of globSync("src/proxy/**/*.ts", { cwd: root })) {
    const text = readFileSync(join(root, path), "utf8");
    for (const [, names = ""] of text.matchAll(/import (?:type )?\{([^}]*)\} from "[^"]*generated\/proto\/[^"]*"/g)) {
      for (const name of names.split(",").map((part) => part.replace("type ", "").trim())) {
        result.set(name, [...(result.get(name) ?? []), path]);
      }
    }
  }
  return result;
}

function translatorFirst(a: string, b: string): number {
  const rank = (path: string): number => (path.startsWith("src/translator/") ? 0 : 1);
  return rank(a) - rank(b) || (basename(a) < basename(b) ? -1 : 1);
}
