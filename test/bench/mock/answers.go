package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The answers, made once at start so that serving them costs almost nothing.

func resp(status, ctype, extra string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\ncontent-type: %s\r\n%scontent-length: %d\r\n\r\n", status, ctype, extra, len(body))
	b.Write(body)
	return b.Bytes()
}

var (
	getResp, chatResp, msgResp, embResp, unauth, notfound []byte
	chatEvents, msgEvents                                 [][]byte
	sseHead                                               = []byte("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n")
)

const text = "The quick brown fox jumps over the lazy dog while a proxy forwards every byte of this answer without looking at it twice. "

func chunked(s string) []byte { return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(s), s)) }

func build() {
	getResp = resp("200 OK", "text/plain", "", bytes.Repeat([]byte("x"), *size))
	content := strings.Repeat(text, 6)
	chat := map[string]any{
		"id": "chatcmpl-bench0001", "object": "chat.completion", "created": 1760000000, "model": "gpt-4o-mini-2024-07-18",
		"choices":      []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": content, "refusal": nil}, "logprobs": nil, "finish_reason": "stop"}},
		"usage":        map[string]any{"prompt_tokens": 120, "completion_tokens": 150, "total_tokens": 270, "prompt_tokens_details": map[string]any{"cached_tokens": 0, "audio_tokens": 0}, "completion_tokens_details": map[string]any{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}},
		"service_tier": "default", "system_fingerprint": "fp_bench",
	}
	b, _ := json.Marshal(chat)
	chatResp = resp("200 OK", "application/json", "x-request-id: req_bench\r\n", b)
	m := map[string]any{"id": "msg_bench0001", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{map[string]any{"type": "text", "text": content}}, "stop_reason": "end_turn", "stop_sequence": nil, "usage": map[string]any{"input_tokens": 120, "output_tokens": 150, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}}
	b, _ = json.Marshal(m)
	msgResp = resp("200 OK", "application/json", "request-id: req_bench\r\n", b)
	embResp = resp("200 OK", "application/json", "", []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,0.2,0.3]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":5,"total_tokens":5}}`))
	unauth = resp("401 Unauthorized", "application/json", "", []byte(`{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}`))
	notfound = resp("404 Not Found", "application/json", "", []byte(`{"error":{"message":"not found"}}`))

	pre := `{"id":"chatcmpl-bench0001","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_bench","choices":[`
	ev := func(s string) []byte { return chunked("data: " + s + "\n\n") }
	chatEvents = append(chatEvents, ev(pre+`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}`))
	for i := 0; i < *chunks; i++ {
		chatEvents = append(chatEvents, ev(pre+`{"index":0,"delta":{"content":" word`+strconv.Itoa(i)+`"},"logprobs":null,"finish_reason":null}]}`))
	}
	chatEvents = append(chatEvents, ev(pre+`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`))
	chatEvents = append(chatEvents, ev(pre+`],"usage":{"prompt_tokens":120,"completion_tokens":150,"total_tokens":270}}`))
	chatEvents = append(chatEvents, append(chunked("data: [DONE]\n\n"), []byte("0\r\n\r\n")...))

	aev := func(n, s string) []byte { return chunked("event: " + n + "\ndata: " + s + "\n\n") }
	msgEvents = append(msgEvents, aev("message_start", `{"type":"message_start","message":{"id":"msg_bench0001","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"output_tokens":1}}}`))
	msgEvents = append(msgEvents, aev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
	for i := 0; i < *chunks; i++ {
		msgEvents = append(msgEvents, aev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word`+strconv.Itoa(i)+`"}}`))
	}
	msgEvents = append(msgEvents, aev("content_block_stop", `{"type":"content_block_stop","index":0}`))
	msgEvents = append(msgEvents, aev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":150}}`))
	msgEvents = append(msgEvents, append(aev("message_stop", `{"type":"message_stop"}`), []byte("0\r\n\r\n")...))
}
