/** Shows what LLM requests used and cost, added up by a label that the reader chooses. */
import type { JSX } from "preact";
import type { ConsoleFeed } from "../client/console-state.ts";
import type { UsageList, UsageRow } from "../data.ts";
import { formatCount, formatUsd } from "../model/format.ts";
import { Table, type Column } from "../parts/table.tsx";

const NAMES: Readonly<Record<string, string | undefined>> = {
  gen_ai_request_model: "Requested model",
  gen_ai_response_model: "Answering model",
  gateway: "Gateway",
  route: "Route",
  gen_ai_system: "Provider",
};

function labelName(label: string): string {
  return NAMES[label] ?? label;
}

function columnsOf(label: string): Column<UsageRow>[] {
  const count = (name: string, read: (row: UsageRow) => number): Column<UsageRow> => ({
    name,
    isNumber: true,
    cell: (row) => formatCount(read(row)),
  });
  return [
    { name: labelName(label), cell: ({ value }) => (value === "" ? "none" : value) },
    count("Requests", ({ requests }) => requests),
    count("Tokens in", ({ inputTokens }) => inputTokens),
    count("Tokens out", ({ outputTokens }) => outputTokens),
    count("Read from cache", ({ cacheReadTokens }) => cacheReadTokens),
    count("Written to cache", ({ cacheWriteTokens }) => cacheWriteTokens),
    { name: "Cost", isNumber: true, cell: (row) => <Cost row={row} /> },
  ];
}

function Cost({ row: { costUsd, unpriced } }: { readonly row: UsageRow }): JSX.Element {
  if (costUsd === null) return <span class="muted">no price</span>;
  return (
    <>
      {formatUsd(costUsd)}
      {unpriced > 0 && <span class="muted"> without {formatCount(unpriced)} unpriced requests</span>}
    </>
  );
}

export function ModelsView({
  usage,
  ask,
}: {
  readonly usage: UsageList;
  readonly ask: ConsoleFeed["ask"];
}): JSX.Element {
  const { label, labels, rows, total } = usage;
  if (total === 0)
    return (
      <p class="empty">
        No LLM request has been answered since the start. Send one to a route that leads to a GwBackend with{" "}
        <code>spec.ai</code>; its tokens appear here, and its cost where the model catalog has a price.
      </p>
    );
  const hasOwnLabel = labels.some((each) => !each.startsWith("gen_ai_") && each !== "gateway" && each !== "route");
  return (
    <>
      <div class="row">
        <label for="usage-label">Add up by</label>
        <select id="usage-label" value={label} onChange={({ currentTarget }) => ask({ usage: currentTarget.value })}>
          {labels.map((each) => (
            <option key={each} value={each}>
              {labelName(each)}
            </option>
          ))}
        </select>
        {rows.length < total && (
          <span class="muted">
            the first {formatCount(rows.length)} of {formatCount(total)}
          </span>
        )}
      </div>
      <Table caption="Usage since the start" columns={columnsOf(label)} rows={rows} keyOf={({ value }) => value} />
      <p class="muted">
        Since the start of this process, of this replica alone.
        {!hasOwnLabel && (
          <>
            {" "}
            To see who spends, add a label with the expression <code>apiKey.group</code> to{" "}
            <code>frontend.metrics.attributes</code> of a GwPolicy.
          </>
        )}
      </p>
    </>
  );
}
