package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// readChunked appends a whole chunked body to buf.
func readChunked(rd *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		l, err := rd.ReadSlice('\n')
		if err != nil {
			return buf, err
		}
		s := strings.TrimSpace(string(l))
		if i := strings.IndexByte(s, ';'); i >= 0 {
			s = s[:i]
		}
		n, err := strconv.ParseInt(s, 16, 64)
		if err != nil {
			return buf, err
		}
		if n == 0 {
			for {
				l, err := rd.ReadSlice('\n')
				if err != nil {
					return buf, err
				}
				if len(bytes.TrimSpace(l)) == 0 {
					return buf, nil
				}
			}
		}
		o := len(buf)
		buf = append(buf, make([]byte, n)...)
		if _, err := io.ReadFull(rd, buf[o:]); err != nil {
			return buf, err
		}
		if _, err := rd.Discard(2); err != nil {
			return buf, err
		}
	}
}

var sess atomic.Int64

func handle(c net.Conn) {
	defer c.Close()
	nconn.Add(1)
	rd := bufio.NewReaderSize(c, 32<<10)
	var body []byte
	for {
		l, err := rd.ReadSlice('\n')
		if err != nil {
			return
		}
		line := string(l)
		f := strings.Fields(line)
		if len(f) < 3 {
			return
		}
		method, path := f[0], f[1]
		query := ""
		if i := strings.IndexByte(path, '?'); i >= 0 {
			path, query = path[:i], path[i+1:]
		}
		// Some clients of Gemini send their key in the query.
		cl, te, closing, expect, authed := 0, false, false, false, *key == "" || strings.Contains(query, "key="+*key)
		for {
			l, err := rd.ReadSlice('\n')
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
			k, v := l[:i], bytes.TrimSpace(l[i+1:])
			if *verbose {
				log.Printf("  %s", l)
			}
			switch len(k) {
			case 14:
				if bytes.EqualFold(k, []byte("content-length")) {
					cl, _ = strconv.Atoi(string(v))
				}
			case 17:
				if bytes.EqualFold(k, []byte("transfer-encoding")) {
					te = true
				}
			case 10:
				if bytes.EqualFold(k, []byte("connection")) && bytes.EqualFold(v, []byte("close")) {
					closing = true
				}
			case 6:
				if bytes.EqualFold(k, []byte("expect")) {
					expect = true
				}
			case 13:
				if bytes.EqualFold(k, []byte("authorization")) && string(v) == "Bearer "+*key {
					authed = true
				}
			case 9:
				if bytes.EqualFold(k, []byte("x-api-key")) && string(v) == *key {
					authed = true
				}
			}
		}
		if expect {
			c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
		}
		body = body[:0]
		if te {
			if body, err = readChunked(rd, body); err != nil {
				return
			}
		} else if cl > 0 {
			if cap(body) < cl {
				body = make([]byte, cl)
			}
			body = body[:cl]
			if _, err := io.ReadFull(rd, body); err != nil {
				return
			}
		}
		nreq.Add(1)
		if *verbose {
			log.Printf("%s %s authed=%v body=%s", method, path, authed, body)
		}
		if *delay > 0 {
			time.Sleep(*delay)
		}
		switch {
		case strings.HasPrefix(path, "/mcp"):
			if method == "GET" && strings.HasPrefix(path, "/mcp-listen") {
				// An open stream on which nothing is said, until the other side leaves.
				if _, err = c.Write(sseHead); err == nil {
					rd.ReadByte()
				}
				return
			}
			if method == "GET" {
				_, err = c.Write(resp("405 Method Not Allowed", "text/plain", "allow: POST, DELETE\r\n", nil))
				break
			}
			if method == "DELETE" {
				_, err = c.Write(resp("200 OK", "text/plain", "", nil))
				break
			}
			a := mcpAnswer(body, strings.HasPrefix(path, "/mcp-100"))
			extra := ""
			if bytes.Contains(body, []byte(`"initialize"`)) {
				extra = fmt.Sprintf("mcp-session-id: mock-%d\r\n", sess.Add(1))
			}
			if a == nil {
				_, err = c.Write(resp("202 Accepted", "application/json", extra, nil))
			} else if *mcpSSE {
				_, err = c.Write(resp("200 OK", "text/event-stream", extra, []byte("event: message\ndata: "+string(a)+"\n\n")))
			} else {
				_, err = c.Write(resp("200 OK", "application/json", extra, a))
			}
		case method == "GET" || method == "HEAD":
			_, err = c.Write(getResp)
		case strings.HasPrefix(path, "/agent"):
			_, err = c.Write(agentResp)
		case strings.HasSuffix(path, "/embeddings"):
			_, err = c.Write(embResp)
		default:
			asks := bytes.Contains(body, []byte(`"stream":true`)) || bytes.Contains(body, []byte(`"stream": true`))
			chat, ok := chatOf(path, asks)
			switch {
			case !ok:
				_, err = c.Write(notfound)
			case !authed:
				n401.Add(1)
				_, err = c.Write(unauth)
			case chat.stream:
				err = writeEvents(c, chat, bytes.Contains(body, []byte("paced")))
			default:
				_, err = c.Write(chat.whole)
			}
		}
		if err != nil || closing {
			return
		}
	}
}

func writeEvents(c net.Conn, chat chat, paced bool) error {
	if _, err := c.Write(chat.head); err != nil {
		return err
	}
	var out []byte
	for i, e := range chat.events {
		if paced {
			if _, err := c.Write(e); err != nil {
				return err
			}
			time.Sleep(*interval)
			continue
		}
		out = append(out, e...)
		if (i+1)%*burst == 0 || i == len(chat.events)-1 {
			if _, err := c.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return nil
}
