/** The translator: feeds events into the graph, lets it settle, and hands out what moved. */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, nameKey } from "../api/refs.ts";
import type { Collection } from "../lib/collections/collection.ts";
import { diagnosticsOf, type ObjectFacts } from "./facts.ts";
import { declareGraph } from "./graph.ts";
import { feed } from "./inputs.ts";
import { Outbox } from "./outbox.ts";
import type { Translator, TranslatorOptions } from "./translator.ts";

export function createTranslator(options: TranslatorOptions): Translator {
  const { graph, inputs, gateways, sent, facts, remarks, documents } = declareGraph(options);
  const outbox = new Outbox();
  let touched: ObjectId[] = [];
  let isWantedNew = false;
  documents.onChange(() => (isWantedNew = true));
  for (const collection of sent) collection.onChange((changes) => outbox.collect(changes));
  const found = [...Object.values(facts), ...Object.values(remarks)];
  for (const collection of found)
    collection.onChange((changes) => {
      for (const { after } of changes) if (after !== undefined) touched.push(after.id);
    });
  return {
    apply(events) {
      touched = [];
      isWantedNew = false;
      for (const event of events) feed(inputs, event);
      graph.flush();
      return { ...outbox.take(), touched, documents: isWantedNew ? [...documents.values()].flat() : undefined };
    },
    resourcesOf: (gateway) => outbox.resourcesOf(gateway),
    resources: () => outbox.resources(),
    gateways: () => [...gateways.keys()].sort(),
    diagnostics: () => found.flatMap((collection) => [...collection.values()].flatMap((each) => diagnosticsOf(each))),
    diagnosticsOf(id) {
      const each = find(id, facts) ?? find(id, remarks);
      return each === undefined ? [] : diagnosticsOf(each);
    },
    facts: (id) => find(id, facts),
  };
}

function find<F extends ObjectFacts>(id: ObjectId, facts: Readonly<Record<string, Collection<F>>>): F | undefined {
  if (id.group !== GATEWAY_GROUP && id.group !== GWPROXY_GROUP) return undefined;
  return Object.hasOwn(facts, id.kind) ? facts[id.kind]?.get(nameKey(id)) : undefined;
}
