/**
 * The official clients of all chat APIs behind one interface, for tests that run the same conversation with each. A
 * question is sent in the format of the client, whole or streamed, and the response is returned in a neutral form.
 */
import Anthropic from "@anthropic-ai/sdk";
import {
  FunctionCallingConfigMode,
  GoogleGenAI,
  type Content,
  type GenerateContentConfig,
  type GenerateContentResponse,
  type Part,
} from "@google/genai";
import OpenAI from "openai";

export interface Question {
  readonly text: string;
  /** Base64 of a PNG. */
  readonly image?: string;
  /** Names of tools without parameters. */
  readonly tools?: readonly string[];
  /** JSON Schema of the answer. */
  readonly schema?: Record<string, unknown>;
  readonly maxTokens?: number;
  /** Lets the model think. */
  readonly isThinking?: boolean;
}

export interface Reply {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[];
  readonly stop: string;
  /** Texts of refusals, in formats that tell them apart. */
  readonly refusal: string;
  readonly thoughts: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** One conversation of a client. */
export interface Chat {
  ask(question: Question): Promise<Reply>;
  /** Answers the calls of the last reply, each with its own name. */
  answerCalls(question: Question): Promise<Reply>;
}

export interface LlmClient {
  readonly name: string;
  /** Words of the client for how an answer ended. */
  readonly stops: Readonly<Record<"end" | "calls" | "length" | "refusal", string>>;
  open(url: string, model: string, isStreamed: boolean): Chat;
  /** Returns status and message of an error that the client threw. */
  errorOf(error: unknown): { readonly status: number | undefined; readonly message: string };
}

const SCHEMA = { type: "object", properties: {} };

const chatCompletions: LlmClient = {
  name: "Completions",
  stops: { end: "stop", calls: "tool_calls", length: "length", refusal: "content_filter" },
  errorOf: (error) => ({ status: (error as { status?: number }).status, message: String((error as Error).message) }),
  open(url, model, isStreamed) {
    const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${url}/v1`, maxRetries: 0 });
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [];
    let last: OpenAI.Chat.ChatCompletionMessage | undefined;
    const send = async ({ tools, schema, maxTokens, isThinking }: Question): Promise<Reply> => {
      const body: OpenAI.Chat.ChatCompletionCreateParamsNonStreaming = {
        model,
        messages,
        ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
        ...(isThinking === true ? { reasoning_effort: "medium" } : {}),
        ...(tools && {
          tools: tools.map((name) => ({ type: "function", function: { name, parameters: SCHEMA } }) as const),
        }),
        ...(schema && { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } }),
      };
      const answer = isStreamed
        ? await client.chat.completions
            .stream({ ...body, stream: true, stream_options: { include_usage: true } })
            .finalChatCompletion()
        : await client.chat.completions.create(body);
      const choice = answer.choices[0];
      last = choice?.message;
      return {
        text: last?.content ?? "",
        calls: (last?.tool_calls ?? []).flatMap((call) =>
          call.type === "function"
            ? [{ id: call.id, name: call.function.name, arguments: JSON.parse(call.function.arguments) as unknown }]
            : [],
        ),
        stop: choice?.finish_reason ?? "",
        refusal: last?.refusal ?? "",
        // A member that other gateways made known.
        thoughts: (last as { reasoning_content?: string } | undefined)?.reasoning_content ?? "",
        inputTokens: answer.usage?.prompt_tokens ?? 0,
        outputTokens: answer.usage?.completion_tokens ?? 0,
      };
    };
    return {
      ask(question) {
        const { text, image } = question;
        const parts: OpenAI.Chat.ChatCompletionContentPart[] = [{ type: "text", text }];
        if (image !== undefined)
          parts.push({ type: "image_url", image_url: { url: `data:image/png;base64,${image}` } });
        messages.push({ role: "user", content: parts });
        return send(question);
      },
      answerCalls(question) {
        if (last !== undefined) messages.push(JSON.parse(JSON.stringify(last)) as OpenAI.Chat.ChatCompletionMessage);
        for (const call of last?.tool_calls ?? [])
          messages.push({ role: "tool", tool_call_id: call.id, content: "function" in call ? call.function.name : "" });
        return send(question);
      },
    };
  },
};

const responses: LlmClient = {
  name: "Responses",
  stops: { end: "completed", calls: "completed", length: "incomplete", refusal: "incomplete" },
  errorOf: chatCompletions.errorOf,
  open(url, model, isStreamed) {
    const client = new OpenAI({ apiKey: "of-the-client", baseURL: `${url}/v1`, maxRetries: 0 });
    const input: OpenAI.Responses.ResponseInputItem[] = [];
    let last: OpenAI.Responses.Response | undefined;
    const send = async ({ tools, schema, maxTokens, isThinking }: Question): Promise<Reply> => {
      const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
        model,
        input,
        store: false,
        include: ["reasoning.encrypted_content"],
        ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
        ...(isThinking === true ? { reasoning: { effort: "medium" } } : {}),
        ...(tools && {
          tools: tools.map((name) => ({ type: "function", name, parameters: SCHEMA, strict: false }) as const),
        }),
        ...(schema && { text: { format: { type: "json_schema", name: "answer", schema } } }),
      };
      const answer = isStreamed
        ? await client.responses.stream({ ...body, stream: true }).finalResponse()
        : await client.responses.create(body);
      last = answer as OpenAI.Responses.Response;
      return {
        text: answer.output_text,
        calls: answer.output.flatMap((item) =>
          item.type === "function_call"
            ? [{ id: item.call_id, name: item.name, arguments: JSON.parse(item.arguments) as unknown }]
            : [],
        ),
        stop: answer.status ?? "",
        refusal: answer.output
          .flatMap((item) => (item.type === "message" ? item.content : []))
          .map((part) => (part.type === "refusal" ? part.refusal : ""))
          .join(""),
        thoughts: answer.output
          .flatMap((item) => (item.type === "reasoning" ? item.summary : []))
          .map(({ text }) => text)
          .join(""),
        inputTokens: answer.usage?.input_tokens ?? 0,
        outputTokens: answer.usage?.output_tokens ?? 0,
      };
    };
    return {
      ask(question) {
        const { text, image } = question;
        const content: OpenAI.Responses.ResponseInputContent[] = [{ type: "input_text", text }];
        if (image !== undefined)
          content.push({ type: "input_image", detail: "auto", image_url: `data:image/png;base64,${image}` });
        input.push({ role: "user", content });
        return send(question);
      },
      answerCalls(question) {
        const keep = (name: string, value: unknown): unknown => (name.startsWith("parsed") ? undefined : value);
        input.push(...(JSON.parse(JSON.stringify(last?.output ?? [], keep)) as OpenAI.Responses.ResponseInputItem[]));
        for (const item of last?.output ?? [])
          if (item.type === "function_call")
            input.push({ type: "function_call_output", call_id: item.call_id, output: item.name });
        return send(question);
      },
    };
  },
};

const messagesClient: LlmClient = {
  name: "Messages",
  stops: { end: "end_turn", calls: "tool_use", length: "max_tokens", refusal: "refusal" },
  errorOf: chatCompletions.errorOf,
  open(url, model, isStreamed) {
    const client = new Anthropic({ apiKey: "of-the-client", baseURL: url, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [];
    let last: Anthropic.Message | undefined;
    const send = async ({ tools, schema, maxTokens = 3000, isThinking }: Question): Promise<Reply> => {
      const body: Anthropic.MessageCreateParamsNonStreaming = {
        model,
        messages,
        max_tokens: maxTokens,
        ...(isThinking === true ? { thinking: { type: "enabled", budget_tokens: 2048 } } : {}),
        ...(tools && { tools: tools.map((name) => ({ name, input_schema: { type: "object" } }) as const) }),
        ...(schema && { output_config: { format: { type: "json_schema", schema } } }),
      };
      last = isStreamed ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
      return {
        text: last.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
        calls: last.content.flatMap((block) =>
          block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
        ),
        stop: last.stop_reason ?? "",
        refusal: "",
        thoughts: last.content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
        inputTokens: last.usage.input_tokens,
        outputTokens: last.usage.output_tokens,
      };
    };
    return {
      ask(question) {
        const { text, image } = question;
        const content: Anthropic.ContentBlockParam[] = [{ type: "text", text }];
        if (image !== undefined)
          content.push({ type: "image", source: { type: "base64", media_type: "image/png", data: image } });
        messages.push({ role: "user", content });
        return send(question);
      },
      answerCalls(question) {
        const blocks = last?.content ?? [];
        messages.push({ role: "assistant", content: blocks });
        const calls = blocks.filter((block) => block.type === "tool_use");
        const content = calls.map(({ id, name }) => ({ type: "tool_result", tool_use_id: id, content: name }) as const);
        messages.push({ role: "user", content });
        return send(question);
      },
    };
  },
};

const gemini: LlmClient = {
  name: "Gemini",
  stops: { end: "STOP", calls: "STOP", length: "MAX_TOKENS", refusal: "SAFETY" },
  errorOf(error) {
    const { status, message } = error as { status?: number; message: string };
    return { status, message };
  },
  open(url, model, isStreamed) {
    const client = new GoogleGenAI({ apiKey: "of-the-client", httpOptions: { baseUrl: url } });
    const contents: Content[] = [];
    let last: Part[] = [];
    const send = async ({ tools, schema, maxTokens, isThinking }: Question): Promise<Reply> => {
      const config: GenerateContentConfig = {
        ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
        ...(isThinking === true ? { thinkingConfig: { thinkingBudget: 2048, includeThoughts: true } } : {}),
        ...(tools && {
          tools: [{ functionDeclarations: tools.map((name) => ({ name, parametersJsonSchema: SCHEMA })) }],
          toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
        }),
        ...(schema && { responseMimeType: "application/json", responseJsonSchema: schema }),
      };
      const request = { model, contents, config };
      const answers: GenerateContentResponse[] = [];
      if (!isStreamed) answers.push(await client.models.generateContent(request));
      else for await (const answer of await client.models.generateContentStream(request)) answers.push(answer);
      last = answers.flatMap((answer) => answer.candidates?.[0]?.content?.parts ?? []);
      const usage = answers.findLast((answer) => answer.usageMetadata !== undefined)?.usageMetadata;
      return {
        text: last.map((part) => (part.thought === true ? "" : (part.text ?? ""))).join(""),
        calls: last.flatMap(({ functionCall: call }) =>
          call === undefined ? [] : [{ id: call.id ?? "", name: call.name ?? "", arguments: call.args }],
        ),
        refusal: "",
        thoughts: last.map((part) => (part.thought === true ? (part.text ?? "") : "")).join(""),
        stop: answers.findLast((answer) => answer.candidates?.[0]?.finishReason)?.candidates?.[0]?.finishReason ?? "",
        inputTokens: usage?.promptTokenCount ?? 0,
        outputTokens: usage?.candidatesTokenCount ?? 0,
      };
    };
    return {
      ask(question) {
        const { text, image } = question;
        const parts: Part[] = [{ text }];
        if (image !== undefined) parts.push({ inlineData: { mimeType: "image/png", data: image } });
        contents.push({ role: "user", parts });
        return send(question);
      },
      answerCalls(question) {
        contents.push({ role: "model", parts: last });
        const calls = last.flatMap(({ functionCall }) => functionCall ?? []);
        const parts = calls.map(({ id, name = "" }) => ({
          functionResponse: { name, response: { result: name }, ...(id === undefined ? {} : { id }) },
        }));
        contents.push({ role: "user", parts });
        return send(question);
      },
    };
  },
};

export const LLM_CLIENTS: readonly LlmClient[] = [chatCompletions, messagesClient, responses, gemini];
