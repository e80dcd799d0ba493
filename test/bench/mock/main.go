// mock: one fast upstream for gateway benchmarks. Raw HTTP/1.1 on net.Conn, a goroutine per connection.
//
//	GET  *                      -> 200, -size bytes (default 1024), text/plain
//	POST */chat/completions     -> OpenAI JSON, or SSE when body has "stream":true (100 chunks + usage + [DONE])
//	POST */v1/messages          -> Anthropic JSON, or Anthropic SSE when "stream":true
//	POST *:generateContent      -> Gemini JSON, *:streamGenerateContent -> SSE
//	POST */converse             -> Bedrock JSON, */converse-stream -> application/vnd.amazon.eventstream
//	POST /agent*                -> a finished task of A2A (JSON-RPC)
//	POST */embeddings           -> small JSON
//	POST /mcp*                  -> MCP streamable HTTP (initialize, ping, tools/list, tools/call echo); /mcp-100 lists 100 tools
//
// SSE pacing: model containing "paced" writes one chunk per -interval; others go out with no pause, one write per -burst chunks.
// -stdio : be an MCP server on stdin/stdout instead (newline-delimited JSON-RPC).
// With -key set, LLM endpoints answer 401 unless Authorization: Bearer <key> or x-api-key: <key> arrives (checks key injection).
package main

import (
	"flag"
	"log"
	"net"
	"sync/atomic"
	"time"
)

var (
	addr     = flag.String("addr", "127.0.0.1:18100", "listen address")
	size     = flag.Int("size", 1024, "GET body size")
	chunks   = flag.Int("chunks", 100, "SSE content chunks")
	interval = flag.Duration("interval", 2*time.Millisecond, "pause per SSE chunk for models containing 'paced'")
	burst    = flag.Int("burst", 1, "chunks per write for unpaced SSE")
	key      = flag.String("key", "sk-upstream", "required upstream key ('' to accept any)")
	stdio    = flag.Bool("stdio", false, "serve MCP on stdin/stdout")
	mcpSSE   = flag.Bool("mcp-sse", false, "answer MCP POSTs with a one-event SSE stream instead of JSON")
	verbose  = flag.Bool("v", false, "log each request")
	delay    = flag.Duration("delay", 0, "think time before each answer")
)

var nreq, n401, nconn atomic.Int64

func main() {
	flag.Parse()
	build()
	buildVendors()
	if *stdio {
		serveStdio()
		return
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("mock on %s", *addr)
	for {
		c, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go handle(c)
	}
}
