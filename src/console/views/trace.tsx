/** Records the next request and draws it; a recording can be saved to a file, and one can be opened. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { AnswerError, type AdminClient } from "../client/admin-client.ts";
import { messageOf } from "../client/error-text.ts";
import { recordRequest } from "../client/trace-recorder.ts";
import { formatCount } from "../model/format.ts";
import { parseTraceFile, printTraceFile, type TraceEvent } from "../model/trace.ts";
import { WaterfallView } from "./waterfall-view.tsx";

/** What the view does at the moment. `error` is the reason why the last recording or file failed. */
type Phase =
  | { readonly name: "idle" | "opening" | "waiting" | "done" }
  | { readonly name: "failed"; readonly error: string };

export function TraceView({ client }: { readonly client: AdminClient }): JSX.Element {
  const [expression, setExpression] = useState("");
  const [phase, setPhase] = useState<Phase>({ name: "idle" });
  const [events, setEvents] = useState<readonly TraceEvent[]>([]);
  const recording = useRef<AbortController>(undefined);
  useEffect(() => () => recording.current?.abort(), []);

  const record = async (): Promise<void> => {
    const aborted = new AbortController();
    recording.current = aborted;
    setEvents([]);
    setPhase({ name: "opening" });
    try {
      await recordRequest(client, {
        expression: expression.trim(),
        signal: aborted.signal,
        onReady: () => setPhase({ name: "waiting" }),
        onEvent: (event) => setEvents((before) => [...before, event]),
      });
      setPhase({ name: "done" });
    } catch (error) {
      setPhase(aborted.signal.aborted ? { name: "idle" } : { name: "failed", error: explainFailure(error) });
    }
  };
  const open = async (file: File): Promise<void> => {
    const { events: read, unreadable } = parseTraceFile(await file.text());
    setEvents(read);
    if (unreadable === 0) setPhase({ name: "done" });
    else setPhase({ name: "failed", error: `${formatCount(unreadable)} lines of the file are not events of a trace.` });
  };
  const isRecording = phase.name === "opening" || phase.name === "waiting";
  return (
    <>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isRecording) void record();
        }}
      >
        <label for="expression">Only a request with</label>
        <input
          id="expression"
          class="code wide"
          placeholder={'any; or CEL such as request.path == "/hello"'}
          value={expression}
          disabled={isRecording}
          onInput={({ currentTarget }) => setExpression(currentTarget.value)}
        />
        {/* The keys keep them two elements: a click on one that became the other would submit the form. */}
        {isRecording ? (
          <button key="stop" type="button" onClick={() => recording.current?.abort()}>
            Stop
          </button>
        ) : (
          <button key="record" type="submit" class="primary">
            Trace the next request
          </button>
        )}
        <OpenFile onFile={(file) => void open(file)} />
        {events.length > 0 && !isRecording && <SaveFile events={events} />}
      </form>
      <PhaseText phase={phase} count={events.length} />
      {events.length > 0 && <WaterfallView events={events} />}
    </>
  );
}

function explainFailure(error: unknown): string {
  if (error instanceof AnswerError && error.status === 404) return "This data plane cannot trace requests.";
  return messageOf(error);
}

function PhaseText({ phase, count }: { readonly phase: Phase; readonly count: number }): JSX.Element {
  const { name } = phase;
  return (
    <div role="status" class="phase">
      {name === "opening" && <p class="muted">Asking the data plane…</p>}
      {name === "waiting" && count === 0 && (
        <p class="notice info">
          Waiting for a request. Send one to a listener, for example with <code>curl</code>.
        </p>
      )}
      {name === "waiting" && count > 0 && <p class="muted">{formatCount(count)} steps so far…</p>}
      {name === "failed" && <p class="notice bad">{phase.error}</p>}
      {name === "idle" && count === 0 && (
        <p class="empty">
          See what one request meets: the route it takes, what each policy did, the endpoint that answered, and how long
          each step took. Credentials are shown as <code>&lt;redacted&gt;</code>; a saved file may still hold what
          clients sent in bodies.
        </p>
      )}
    </div>
  );
}

function OpenFile({ onFile }: { readonly onFile: (file: File) => void }): JSX.Element {
  return (
    <label class="button">
      Open a file
      <input
        class="hidden"
        type="file"
        accept=".jsonl,.json,.txt"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file !== undefined) onFile(file);
          // The same file can be chosen again.
          currentTarget.value = "";
        }}
      />
    </label>
  );
}

/** Offers the recording as a file of one event a line, which `gwproxy trace -f` opens. */
function SaveFile({ events }: { readonly events: readonly TraceEvent[] }): JSX.Element {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([printTraceFile(events)], { type: "application/jsonl" }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [events]);
  return (
    <a class="button" href={url} download="trace.jsonl">
      Save as a file
    </a>
  );
}
