package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Answers of the Gemini API, of Bedrock (Converse) and of an A2A agent, with the same texts as the others.

var (
	geminiResp, converseResp     []byte
	agentResp                    []byte
	geminiEvents, converseEvents [][]byte
	frameHead                    = []byte("HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\ntransfer-encoding: chunked\r\n\r\n")
)

const geminiEnd = `"usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":150,"totalTokenCount":270},"modelVersion":"gemini-2.5-flash","responseId":"bench0001"}`

func buildVendors() {
	content, _ := json.Marshal(strings.Repeat(text, 6))
	geminiPiece := func(text, more string) string {
		return `{"candidates":[{"content":{"parts":[{"text":` + text + `}],"role":"model"},` + more + `"index":0}],` + geminiEnd
	}
	geminiResp = resp("200 OK", "application/json; charset=UTF-8", "", []byte(geminiPiece(string(content), `"finishReason":"STOP",`)))
	converseResp = resp("200 OK", "application/json", "x-amzn-requestid: bench\r\n", []byte(`{"metrics":{"latencyMs":12},"output":{"message":{"content":[{"text":`+string(content)+`}],"role":"assistant"}},"stopReason":"end_turn","usage":{"inputTokens":120,"outputTokens":150,"totalTokens":270}}`))
	agentResp = resp("200 OK", "application/json", "", []byte(`{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"task-1","contextId":"context-1","status":{"state":"completed"},"artifacts":[{"artifactId":"a-1","parts":[{"kind":"text","text":`+string(content)+`}]}]}}`))

	converseEvents = append(converseEvents, frame("messageStart", `{"p":"abcdefghij","role":"assistant"}`))
	for i := 0; i < *chunks; i++ {
		more := ""
		if i == *chunks-1 {
			more = `"finishReason":"STOP",`
		}
		geminiEvents = append(geminiEvents, chunked("data: "+geminiPiece(`" word`+strconv.Itoa(i)+`"`, more)+"\r\n\r\n"))
		converseEvents = append(converseEvents, frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":" word`+strconv.Itoa(i)+`"},"p":"abcdefghijklmnop"}`))
	}
	geminiEvents = append(geminiEvents, []byte("0\r\n\r\n"))
	converseEvents = append(converseEvents, frame("contentBlockStop", `{"contentBlockIndex":0,"p":"abcdef"}`))
	converseEvents = append(converseEvents, frame("messageStop", `{"p":"abcdefg","stopReason":"end_turn"}`))
	converseEvents = append(converseEvents, append(frame("metadata", `{"metrics":{"latencyMs":12},"p":"abc","usage":{"inputTokens":120,"outputTokens":150,"totalTokens":270}}`), []byte("0\r\n\r\n")...))
}

// frame writes an event of application/vnd.amazon.eventstream as one chunk.
func frame(name, payload string) []byte {
	var headers []byte
	for _, h := range [][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, 7)
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	return append(append([]byte(fmt.Sprintf("%x\r\n", len(f))), f...), "\r\n"...)
}

// A chat in the format that the path tells; ok is false for another path.
type chat struct {
	whole  []byte
	events [][]byte
	head   []byte
	stream bool
}

func chatOf(path string, asksForStream bool) (c chat, ok bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{chatResp, chatEvents, sseHead, asksForStream}, true
	case strings.HasSuffix(path, "/messages"):
		return chat{msgResp, msgEvents, sseHead, asksForStream}, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return chat{geminiResp, geminiEvents, sseHead, strings.HasSuffix(path, ":streamGenerateContent")}, true
	case strings.HasSuffix(path, "/converse"), strings.HasSuffix(path, "/converse-stream"):
		return chat{converseResp, converseEvents, frameHead, strings.HasSuffix(path, "-stream")}, true
	}
	return chat{}, false
}
