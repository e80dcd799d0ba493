package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

// One HTTP/1.1 connection: writes a request, reads the whole answer, keeps an MCP session where asked.
type conn struct {
	c    net.Conn
	rd   *bufio.Reader
	host string
	sid  string
	id   int
	buf  []byte
}

var u *url.URL

func dial() (*conn, error) {
	c, err := net.DialTimeout("tcp", u.Host, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, rd: bufio.NewReaderSize(c, 64<<10)}, nil
}

func request(body []byte, extra []string) []byte {
	var b bytes.Buffer
	p := u.RequestURI()
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nhost: %s\r\nuser-agent: loadgen\r\naccept: application/json, text/event-stream\r\n", *method, p, u.Host)
	for _, h := range append(append([]string{}, H...), extra...) {
		b.WriteString(h + "\r\n")
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "content-type: application/json\r\ncontent-length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// do writes one request and reads the whole answer. first: time to the first body byte.
func (k *conn) do(req []byte) (status int, sid string, first time.Time, closed bool, err error) {
	k.c.SetDeadline(time.Now().Add(*timeout))
	if _, err = k.c.Write(req); err != nil {
		return
	}
	k.buf = k.buf[:0]
	l, err := k.rd.ReadSlice('\n')
	if err != nil {
		return
	}
	if len(l) < 12 {
		err = fmt.Errorf("bad status line %q", l)
		return
	}
	status, _ = strconv.Atoi(string(l[9:12]))
	cl, te := -1, false
	for {
		l, err = k.rd.ReadSlice('\n')
		if err != nil {
			return
		}
		l = bytes.TrimRight(l, "\r\n")
		if len(l) == 0 {
			break
		}
		i := bytes.IndexByte(l, ':')
		if i < 0 {
			continue
		}
		n, v := l[:i], bytes.TrimSpace(l[i+1:])
		switch {
		case len(n) == 14 && bytes.EqualFold(n, []byte("content-length")):
			cl, _ = strconv.Atoi(string(v))
		case len(n) == 17 && bytes.EqualFold(n, []byte("transfer-encoding")):
			te = true
		case len(n) == 14 && bytes.EqualFold(n, []byte("mcp-session-id")):
			sid = string(v)
		case len(n) == 10 && bytes.EqualFold(n, []byte("connection")) && bytes.EqualFold(v, []byte("close")):
			closed = true
		}
	}
	switch {
	case status == 204 || status == 202 && cl <= 0 && !te:
	case te:
		for {
			l, err = k.rd.ReadSlice('\n')
			if err != nil {
				return
			}
			if first.IsZero() {
				first = time.Now()
			}
			s := bytes.TrimSpace(l)
			if i := bytes.IndexByte(s, ';'); i >= 0 {
				s = s[:i]
			}
			var n int64
			n, err = strconv.ParseInt(string(s), 16, 64)
			if err != nil {
				return
			}
			if n == 0 {
				for {
					l, err = k.rd.ReadSlice('\n')
					if err != nil {
						return
					}
					if len(bytes.TrimSpace(l)) == 0 {
						return
					}
				}
			}
			o := len(k.buf)
			if cap(k.buf)-o < int(n) {
				nb := make([]byte, o, 2*cap(k.buf)+int(n))
				copy(nb, k.buf)
				k.buf = nb
			}
			k.buf = k.buf[:o+int(n)]
			if _, err = io.ReadFull(k.rd, k.buf[o:]); err != nil {
				return
			}
			if _, err = k.rd.Discard(2); err != nil {
				return
			}
		}
	case cl >= 0:
		if cap(k.buf) < cl {
			k.buf = make([]byte, cl)
		}
		k.buf = k.buf[:cl]
		_, err = io.ReadFull(k.rd, k.buf)
		first = time.Now()
	default:
		closed = true
		k.buf, err = io.ReadAll(k.rd)
		first = time.Now()
	}
	return
}

func (k *conn) initMCP() error {
	init := []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + *mcpVer + `","capabilities":{},"clientInfo":{"name":"loadgen","version":"1.0"}}}`)
	st, sid, _, _, err := k.do(request(init, nil))
	if err != nil || st != 200 {
		return fmt.Errorf("initialize: %d %v %s", st, err, k.buf)
	}
	k.sid = sid
	st, _, _, _, err = k.do(request([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), k.mcpH()))
	if err != nil || st >= 300 {
		return fmt.Errorf("initialized: %d %v %s", st, err, k.buf)
	}
	return nil
}
func (k *conn) mcpH() []string {
	h := []string{"mcp-protocol-version: " + *mcpVer}
	if k.sid != "" {
		h = append(h, "mcp-session-id: "+k.sid)
	}
	return h
}
