package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// A request of JSON-RPC, as far as it is looked at.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// A hundred tools of 420 bytes each, as servers with generated descriptions list them.
var manyTools = func() string {
	tools := make([]string, 100)
	for at := range tools {
		tool := fmt.Sprintf(`{"name":"tool-%d","description":"%s","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to say"},"times":{"type":"integer"}},"required":["text"]}}`, at, strings.Repeat("Says a text. ", 20))
		tools[at] = tool
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}()

// many: the server has a hundred tools. nil for a notification.
func mcpAnswer(b []byte, many bool) []byte {
	var r rpc
	if json.Unmarshal(b, &r) != nil {
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
	}
	if len(r.ID) == 0 {
		return nil
	}
	var res string
	switch r.Method {
	case "initialize":
		var p struct{ ProtocolVersion string }
		json.Unmarshal(r.Params, &p)
		v := p.ProtocolVersion
		if v != "2024-11-05" && v != "2025-03-26" && v != "2025-06-18" && v != "2025-11-25" {
			v = "2025-11-25"
		}
		res = `{"protocolVersion":"` + v + `","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"mock","version":"1.0.0"}}`
	case "ping":
		res = `{}`
	case "tools/list":
		if many {
			res = manyTools
			break
		}
		res = `{"tools":[{"name":"echo","description":"Echo the text back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"add","description":"Add two numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}]}`
	case "tools/call":
		var p struct {
			Name      string
			Arguments struct{ Text string }
		}
		json.Unmarshal(r.Params, &p)
		t, _ := json.Marshal("echo: " + p.Arguments.Text)
		res = `{"content":[{"type":"text","text":` + string(t) + `}],"isError":false}`
	default:
		return []byte(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":-32601,"message":"Method not found"}}`)
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + res + `}`)
}

func serveStdio() {
	rd := bufio.NewReaderSize(os.Stdin, 1<<20)
	w := bufio.NewWriter(os.Stdout)
	for {
		l, err := rd.ReadBytes('\n')
		if len(bytes.TrimSpace(l)) > 0 {
			if a := mcpAnswer(l, false); a != nil {
				w.Write(a)
				w.WriteByte('\n')
				w.Flush()
			}
		}
		if err != nil {
			return
		}
	}
}
