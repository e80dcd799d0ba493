/** The translator: feeds events into the graph, lets it settle, and hands out what moved. */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, nameKey } from "../api/refs.ts";
import { diagnosticsOf, type StatusFacts } from "./facts.ts";
import { declareGraph } from "./graph.ts";
import { feed } from "./inputs.ts";
import { Outbox } from "./outbox.ts";
import type { Translator, TranslatorOptions } from "./translator.ts";

export function createTranslator(options: TranslatorOptions): Translator {
  const { graph, inputs, gateways, sent, facts } = declareGraph(options);
  const outbox = new Outbox();
  let touched: ObjectId[] = [];
  for (const collection of sent) collection.onChange((changes) => outbox.collect(changes));
  for (const collection of Object.values(facts))
    collection.onChange((changes) => {
      for (const { after } of changes) if (after !== undefined) touched.push(after.id);
    });
  return {
    apply(events) {
      touched = [];
      for (const event of events) feed(inputs, event);
      graph.flush();
      return { ...outbox.take(), touched };
    },
    resourcesOf: (gateway) => outbox.resourcesOf(gateway),
    resources: () => outbox.resources(),
    gateways: () => [...gateways.keys()].sort(),
    diagnostics: () =>
      Object.values(facts).flatMap((collection) => [...collection.values()].flatMap((found) => diagnosticsOf(found))),
    facts(id) {
      if (id.group !== GATEWAY_GROUP && id.group !== GWPROXY_GROUP) return undefined;
      return isFactKind(id.kind, facts) ? facts[id.kind].get(nameKey(id)) : undefined;
    },
  };
}

function isFactKind(kind: string, facts: Readonly<Record<StatusFacts["kind"], unknown>>): kind is StatusFacts["kind"] {
  return Object.hasOwn(facts, kind);
}
