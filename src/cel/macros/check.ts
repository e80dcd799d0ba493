/**
 * The types of macros: what they iterate over, the types of their variables in the body, and their results. table.ts
 * pairs each check with its compilation.
 */
import type { Call, Node } from "../ast.ts";
import { CelError } from "../errors.ts";
import type { CheckMacro, MacroChecker } from "../macro.ts";
import {
  BOOL,
  type CelType,
  DYN,
  INT,
  STRING,
  isDyn,
  listOf,
  mapOf,
  optionalOf,
  parametersOf,
  typeText,
} from "../types.ts";
import { variableName, variableNames } from "../variable-name.ts";

/** Returns the key and value types of a list or map that is iterated over. */
function elementsOf(
  checker: MacroChecker,
  node: Node,
): { readonly key: CelType; readonly value: CelType; isMap: boolean } {
  const type = checker.types.resolve(checker.check(node));
  if (type.kind === "variable" || isDyn(type)) return { key: DYN, value: DYN, isMap: false };
  if (type.kind === "object") return { key: STRING, value: DYN, isMap: true };
  const [item] = parametersOf(type, "list") ?? [];
  if (item !== undefined) return { key: INT, value: item, isMap: false };
  const [key, value] = parametersOf(type, "map") ?? [];
  if (key !== undefined && value !== undefined) return { key, value, isMap: true };
  throw new CelError("no_such_overload", `a walk needs list or map, not ${typeText(type)}`, node.position);
}

/** Checks the arguments after the variable names, with the variables in scope. */
function inWalk<T>(
  checker: MacroChecker,
  call: Call,
  variables: 1 | 2,
  body: (nodes: readonly Node[], elements: { readonly key: CelType; readonly item: CelType }) => T,
): T {
  // The macro table binds these macros only to calls with a target and all arguments.
  const { key, value, isMap } = elementsOf(checker, call.target as Node);
  const item = isMap && variables === 1 ? key : value;
  const types = variables === 1 ? [item] : [key, value];
  const locals = variableNames(call, variables).map((name, at) => ({ name, type: types[at] ?? DYN }));
  return checker.withLocals(locals, () => body(call.args.slice(variables), { key, item }));
}

export function checkQuantifier(variables: 1 | 2): CheckMacro {
  return (checker, call) =>
    inWalk(checker, call, variables, ([predicate]) => {
      checker.wants(BOOL, predicate as Node, `the test of ${call.name}()`);
      return BOOL;
    });
}

/** Checks the last node as the transformation, and a node before it as the filter. */
function transformed(checker: MacroChecker, call: Call, nodes: readonly Node[]): CelType {
  if (nodes.length === 2) checker.wants(BOOL, nodes[0] as Node, `the filter of ${call.name}()`);
  return checker.types.resolve(checker.check(nodes.at(-1) as Node));
}

export function checkIntoList(variables: 1 | 2): CheckMacro {
  return (checker, call) => inWalk(checker, call, variables, (nodes) => listOf(transformed(checker, call, nodes)));
}

export const checkFilter: CheckMacro = (checker, call) =>
  inWalk(checker, call, 1, ([predicate], { item }) => {
    checker.wants(BOOL, predicate as Node, "the test of filter()");
    return listOf(checker.types.resolve(item));
  });

export const checkIntoMap: CheckMacro = (checker, call) =>
  inWalk(checker, call, 2, (nodes, { key }) => mapOf(key, transformed(checker, call, nodes)));

export const checkIntoEntries: CheckMacro = (checker, call) =>
  inWalk(checker, call, 2, (nodes) => {
    const type = transformed(checker, call, nodes);
    if (isDyn(type) || type.kind !== "named" || parametersOf(type, "map") !== undefined) return type;
    throw new CelError("no_such_overload", `${call.name}() needs a map, not ${typeText(type)}`, call.position);
  });

export const checkHas: CheckMacro = (checker, { args, position }) => {
  const [node] = args;
  if (node?.kind !== "select") throw new CelError("syntax", "has() takes a selection like a.b", position);
  checker.check(node);
  return BOOL;
};

export const checkDyn: CheckMacro = (checker, { args }) => {
  checker.check(args[0] as Node);
  return DYN;
};

export function checkBinding(initOf: (call: Call) => Node | undefined): CheckMacro {
  return (checker, call) => {
    const type = checker.check(initOf(call) as Node);
    return checker.withLocals([{ name: variableName(call.args[0]), type }], () =>
      checker.check(call.args.at(-1) as Node),
    );
  };
}

/** Returns the type inside an optional. */
function insideOptional(checker: MacroChecker, { target, name }: Call): CelType {
  const node = target as Node;
  const type = checker.types.resolve(checker.check(node));
  if (isDyn(type) || type.kind === "variable") return DYN;
  const [inner] = parametersOf(type, "optional_type") ?? [];
  if (inner !== undefined) return inner;
  throw new CelError("no_such_overload", `${name}() needs optional, not ${typeText(type)}`, node.position);
}

export function checkOptionalMap(flat: boolean): CheckMacro {
  return (checker, call) => {
    const locals = [{ name: variableName(call.args[0]), type: insideOptional(checker, call) }];
    return checker.withLocals(locals, () => {
      const body = call.args[1] as Node;
      return flat ? checker.wants(optionalOf(DYN), body, `${call.name}()`) : optionalOf(checker.check(body));
    });
  };
}

export function checkAlternative(wanted: "optional" | "value"): CheckMacro {
  return (checker, call) => {
    const inner = insideOptional(checker, call);
    const [fallback] = call.args;
    if (wanted === "value") return checker.types.join(inner, checker.check(fallback as Node));
    return checker.types.join(optionalOf(inner), checker.wants(optionalOf(DYN), fallback as Node, "or()"));
  };
}

/** Checks coalesce() and default(), which return the first argument that has a value. */
export const checkCoalesce: CheckMacro = (checker, { args }) => {
  let common: CelType | undefined;
  for (const arg of args) {
    const type = checker.check(arg);
    common = common === undefined ? type : checker.types.join(common, type);
  }
  return common ?? DYN;
};

export const checkVariables: CheckMacro = () => mapOf(STRING, DYN);

function mapElements(checker: MacroChecker, call: Call): { readonly key: CelType; readonly value: CelType } {
  const { key, value, isMap } = elementsOf(checker, call.target as Node);
  if (isMap || isDyn(value)) return { key, value };
  throw new CelError("no_such_overload", `${call.name}() needs a map`, call.position);
}

export const checkMapValues: CheckMacro = (checker, call) => {
  const { key, value } = mapElements(checker, call);
  const locals = [{ name: variableName(call.args[0]), type: value }];
  return checker.withLocals(locals, () => mapOf(key, checker.check(call.args[1] as Node)));
};

export const checkFilterKeys: CheckMacro = (checker, call) => {
  const { key, value } = mapElements(checker, call);
  return checker.withLocals([{ name: variableName(call.args[0]), type: key }], () => {
    checker.wants(BOOL, call.args[1] as Node, "the test of filterKeys()");
    return mapOf(key, value);
  });
};
