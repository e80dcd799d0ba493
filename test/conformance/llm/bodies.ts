/** Request bodies, by the format of the client, that every gateway of the comparison translates. */

export type Fields = Record<string, unknown>;
export type ClientName = "Completions" | "Messages" | "Responses" | "Gemini";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABXvMqOgAAAABJRU5ErkJggg==";
const PDF = "JVBERi0xLjQKJSVFT0YK";

const CITY = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const WEATHER = {
  type: "object",
  properties: {
    city: { type: "string", description: "Name of the city." },
    unit: { type: "string", enum: ["c", "f"] },
  },
  required: ["city"],
};
const NOTHING = { type: "object", properties: {} };

function completionTool(name: string, description: string, parameters: Fields): Fields {
  return { type: "function", function: { name, description, parameters } };
}

const COMPLETION_TOOLS = [
  completionTool("weather", "Tells the weather.", WEATHER),
  completionTool("time", "Tells the time.", NOTHING),
];
const QUESTION = { role: "user", content: "How is the weather in Rome?" };

function completionCall(id: string, name: string, given: string): Fields {
  return { id, type: "function", function: { name, arguments: given } };
}

const COMPLETIONS: Readonly<Record<string, Fields>> = {
  settings: {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
    ],
    max_tokens: 300,
    temperature: 0.5,
    stop: ["END", "STOP"],
    user: "user-1",
  },
  "top-p": { messages: [QUESTION], max_tokens: 300, top_p: 0.9, stop: "END" },
  "no-limit": { messages: [QUESTION] },
  developer: {
    messages: [
      { role: "system", content: "You are a guide." },
      { role: "developer", content: [{ type: "text", text: "Answer in Italian." }] },
      {
        role: "user",
        content: [
          { type: "text", text: "Where is the" },
          { type: "text", text: "forum?" },
        ],
      },
    ],
    max_completion_tokens: 300,
  },
  turns: {
    messages: [
      { role: "user", content: "One?" },
      { role: "assistant", content: "Two." },
      { role: "user", content: "Three?" },
      { role: "user", content: "And four?" },
    ],
    max_tokens: 300,
  },
  tools: {
    messages: [
      QUESTION,
      {
        role: "assistant",
        content: null,
        tool_calls: [completionCall("call_1", "weather", '{"city":"Rome"}'), completionCall("call_2", "time", "{}")],
      },
      { role: "tool", tool_call_id: "call_1", content: "Sunny." },
      { role: "tool", tool_call_id: "call_2", content: "Noon." },
    ],
    max_tokens: 300,
    tools: COMPLETION_TOOLS,
    tool_choice: "auto",
  },
  "text-and-call": {
    messages: [
      QUESTION,
      { role: "assistant", content: "I look.", tool_calls: [completionCall("call_1", "weather", '{"city":"Rome"}')] },
      { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "Sunny." }] },
      { role: "user", content: "And tomorrow?" },
    ],
    max_tokens: 300,
    tools: COMPLETION_TOOLS,
  },
  required: { messages: [QUESTION], max_tokens: 300, tools: COMPLETION_TOOLS, tool_choice: "required" },
  forced: {
    messages: [QUESTION],
    max_tokens: 300,
    tools: COMPLETION_TOOLS,
    tool_choice: { type: "function", function: { name: "weather" } },
  },
  "no-calls": { messages: [QUESTION], max_tokens: 300, tools: COMPLETION_TOOLS, tool_choice: "none" },
  "one-call": {
    messages: [QUESTION],
    max_tokens: 300,
    tools: COMPLETION_TOOLS,
    tool_choice: "auto",
    parallel_tool_calls: false,
  },
  image: {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
        ],
      },
    ],
    max_tokens: 300,
  },
  document: {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What does it say?" },
          { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${PDF}` } },
        ],
      },
    ],
    max_tokens: 300,
  },
  schema: {
    messages: [QUESTION],
    max_tokens: 300,
    response_format: { type: "json_schema", json_schema: { name: "place", strict: true, schema: CITY } },
  },
  effort: { messages: [QUESTION], max_completion_tokens: 8000, reasoning_effort: "medium" },
};

const MESSAGE_TOOLS = [
  { name: "weather", description: "Tells the weather.", input_schema: WEATHER },
  { name: "time", description: "Tells the time.", input_schema: NOTHING },
];

const MESSAGES: Readonly<Record<string, Fields>> = {
  settings: {
    system: "Be brief.",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 300,
    temperature: 0.5,
    stop_sequences: ["END", "STOP"],
    metadata: { user_id: "user-1" },
  },
  blocks: {
    system: [
      { type: "text", text: "You are a guide." },
      { type: "text", text: "Answer in Italian." },
    ],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Where is the" },
          { type: "text", text: "forum?" },
        ],
      },
    ],
    max_tokens: 300,
    top_p: 0.9,
  },
  tools: {
    messages: [
      QUESTION,
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look." },
          { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Rome" } },
          { type: "tool_use", id: "toolu_2", name: "time", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "Sunny." },
          { type: "tool_result", tool_use_id: "toolu_2", content: [{ type: "text", text: "Noon." }], is_error: true },
          { type: "text", text: "And tomorrow?" },
        ],
      },
    ],
    max_tokens: 300,
    tools: MESSAGE_TOOLS,
  },
  required: { messages: [QUESTION], max_tokens: 300, tools: MESSAGE_TOOLS, tool_choice: { type: "any" } },
  forced: {
    messages: [QUESTION],
    max_tokens: 300,
    tools: MESSAGE_TOOLS,
    tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
  },
  image: {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
        ],
      },
    ],
    max_tokens: 300,
  },
  thinking: {
    messages: [QUESTION],
    max_tokens: 8000,
    thinking: { type: "enabled", budget_tokens: 2048 },
  },
  schema: { messages: [QUESTION], max_tokens: 300, output_config: { format: { type: "json_schema", schema: CITY } } },
};

const RESPONSE_TOOLS = [
  { type: "function", name: "weather", description: "Tells the weather.", parameters: WEATHER, strict: false },
  { type: "function", name: "time", description: "Tells the time.", parameters: NOTHING, strict: false },
];

const RESPONSES: Readonly<Record<string, Fields>> = {
  settings: { instructions: "Be brief.", input: "Hello", max_output_tokens: 300, temperature: 0.5, store: false },
  turns: {
    input: [
      { role: "developer", content: "Answer in Italian." },
      { role: "user", content: [{ type: "input_text", text: "One?" }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Two.", annotations: [] }] },
      { role: "user", content: "Three?" },
    ],
    max_output_tokens: 300,
    top_p: 0.9,
    store: false,
  },
  tools: {
    input: [
      QUESTION,
      { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Rome"}' },
      { type: "function_call", call_id: "call_2", name: "time", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "Sunny." },
      { type: "function_call_output", call_id: "call_2", output: "Noon." },
    ],
    max_output_tokens: 300,
    tools: RESPONSE_TOOLS,
    store: false,
  },
  required: { input: "Weather?", max_output_tokens: 300, tools: RESPONSE_TOOLS, tool_choice: "required", store: false },
  forced: {
    input: "Weather?",
    max_output_tokens: 300,
    tools: RESPONSE_TOOLS,
    tool_choice: { type: "function", name: "weather" },
    parallel_tool_calls: false,
    store: false,
  },
  image: {
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${PIXEL}` },
        ],
      },
    ],
    max_output_tokens: 300,
    store: false,
  },
  schema: {
    input: "Where?",
    max_output_tokens: 300,
    text: { format: { type: "json_schema", name: "place", strict: true, schema: CITY } },
    store: false,
  },
  effort: { input: "Why?", max_output_tokens: 8000, reasoning: { effort: "medium" }, store: false },
};

const GEMINI_TOOLS = [
  {
    functionDeclarations: [
      { name: "weather", description: "Tells the weather.", parametersJsonSchema: WEATHER },
      { name: "time", description: "Tells the time.", parametersJsonSchema: NOTHING },
    ],
  },
];
const GEMINI_QUESTION = { role: "user", parts: [{ text: "How is the weather in Rome?" }] };

const GEMINI: Readonly<Record<string, Fields>> = {
  settings: {
    systemInstruction: { parts: [{ text: "Be brief." }] },
    contents: [GEMINI_QUESTION],
    generationConfig: { maxOutputTokens: 300, temperature: 0.5, stopSequences: ["END"] },
  },
  turns: {
    contents: [GEMINI_QUESTION, { role: "model", parts: [{ text: "Fine." }] }, GEMINI_QUESTION],
    generationConfig: { maxOutputTokens: 300, topP: 0.9 },
  },
  tools: {
    contents: [
      GEMINI_QUESTION,
      { role: "model", parts: [{ functionCall: { name: "weather", args: { city: "Rome" } } }] },
      { role: "user", parts: [{ functionResponse: { name: "weather", response: { content: "Sunny." } } }] },
    ],
    tools: GEMINI_TOOLS,
    generationConfig: { maxOutputTokens: 300 },
  },
  required: {
    contents: [GEMINI_QUESTION],
    tools: GEMINI_TOOLS,
    toolConfig: { functionCallingConfig: { mode: "ANY" } },
    generationConfig: { maxOutputTokens: 300 },
  },
  image: {
    contents: [
      { role: "user", parts: [{ text: "What is this?" }, { inlineData: { mimeType: "image/png", data: PIXEL } }] },
    ],
    generationConfig: { maxOutputTokens: 300 },
  },
  schema: {
    contents: [GEMINI_QUESTION],
    generationConfig: { maxOutputTokens: 300, responseMimeType: "application/json", responseJsonSchema: CITY },
  },
};

export const BODIES: Readonly<Record<ClientName, Readonly<Record<string, Fields>>>> = {
  Completions: COMPLETIONS,
  Messages: MESSAGES,
  Responses: RESPONSES,
  Gemini: GEMINI,
};
